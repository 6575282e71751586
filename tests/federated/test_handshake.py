"""How nodes come into a run: asked again, let in late, or left out by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from flwr.app import Error, Message

from fedanon.errors import ConfigError, SchemaError, UpdateRejectedError
from fedanon.federated import handshake
from fedanon.federated.deployment.roster import Roster
from fedanon.federated.engines import LocalGrid
from fedanon.federated.handshake import Attendance, Visitor
from fedanon.federated.server import FederatedRun
from fedanon.io.keys import node_keys
from fedanon.learning.participants import Participants, unnamed
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings
from tests.federated.conftest import prepared_app, settings
from tests.learning.test_rounds import facts


class Hospitals(LocalGrid):
    """Nodes that may come late or fail; they have names, and a time at which they came."""

    def __init__(self, chosen: RunSettings) -> None:
        super().__init__(prepared_app(chosen), chosen)
        self.asked: Counter[tuple[int, str]] = Counter()
        self.round = 0
        self.fails: Callable[[int, int], bool] = lambda *_: False
        self.comes = dict.fromkeys(self._contexts, 0)

    def get_node_ids(self) -> Iterable[int]:
        return [node for node, number in self.comes.items() if number <= self.round]

    def look(self) -> dict[int, Visitor]:
        return {node: Visitor(f"hospital-{node}", str(self.comes[node])) for node in self.get_node_ids()}

    def _deliver(self, message: Message) -> Message:
        about = message.metadata
        self.asked[about.dst_node_id, about.message_type] += 1
        self.round = max(self.round, int(about.group_id))
        if self.fails(about.dst_node_id, self.asked[about.dst_node_id, about.message_type]):
            return Message(Error(code=0, reason="broken"), reply_to=message)
        return super()._deliver(message)


def play(grid: Hospitals, chosen: RunSettings, **attendance: Any) -> RunResult:
    return FederatedRun(grid, chosen, attendance=Attendance(look=grid.look, **attendance)).run()


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PAUSE", 0.0)


def test_a_node_that_fails_its_first_answer_is_asked_again() -> None:
    chosen = settings("lr", rounds=2)
    grid = Hospitals(chosen)
    grid.fails = lambda node, time: node == 2 and time == 1
    outcome = play(grid, chosen, nodes=5, seconds=60.0)
    assert sorted(outcome.facts) == [0, 1, 2, 3, 4]
    assert grid.asked[2, "query"] == 2
    assert [entry for entry in outcome.unresponsive if entry["during"] == "query"] == []


def test_a_node_that_fails_for_good_does_not_stop_the_others() -> None:
    chosen = settings("lr", rounds=2)
    grid = Hospitals(chosen)
    grid.fails = lambda node, _: node == 2
    outcome = play(grid, chosen, nodes=5, seconds=60.0)
    assert sorted(outcome.facts) == [0, 2, 3, 4]
    assert grid.asked[2, "query"] == handshake.TRIES
    assert outcome.unresponsive == [{"round": 0, "node": "hospital-2", "name": "hospital-2", "during": "query"}]


def test_a_node_that_comes_late_joins_between_rounds() -> None:
    chosen = settings("lr", rounds=4)
    grid = Hospitals(chosen)
    grid.comes[5] = 2
    outcome = play(grid, chosen, nodes=4)
    assert sorted(outcome.facts) == [0, 1, 2, 3, 4]
    assert [grid.asked[5, kind] for kind in ("query", "train")] == [1, 2]
    assert outcome.names == {number: f"hospital-{number + 1}" for number in range(5)}


def test_nobody_joins_where_noise_is_meant_for_those_who_are_there() -> None:
    chosen = settings("lr", rounds=3, dp_settings={"epsilon": 2, "randomness": "seeded"})
    grid = Hospitals(chosen)
    grid.comes[5] = 2
    assert sorted(play(grid, chosen, nodes=4).facts) == [0, 1, 2, 3]


def test_who_differs_is_left_out_by_name() -> None:
    nodes = Participants()
    nodes.names = {1: "north", 2: "south", 3: "east"}
    for node in nodes.names:
        nodes.admit(node, node, facts(version="2" if node == 2 else "1"))
    nodes.check_agreement()
    assert nodes.nodes == [1, 3]
    reason = "its version of fedanon is not that of the others"
    assert nodes.rejected == [{"round": 0, "node": 2, "name": "south", "reason": reason}]
    with pytest.raises(UpdateRejectedError, match="version of fedanon"):
        nodes.admit(4, 4, facts(version="2"))


def test_without_a_majority_both_sides_are_named() -> None:
    nodes = Participants()
    nodes.names = {1: "north", 2: "south"}
    for node in nodes.names:
        nodes.admit(node, node, facts(version=str(node)))
    with pytest.raises(SchemaError, match="north against south"):
        nodes.check_agreement()


def test_a_number_is_taken_once() -> None:
    nodes = Participants()
    nodes.admit(1, 0, facts(10))
    with pytest.raises(UpdateRejectedError, match="another node has its number 0"):
        nodes.admit(2, 0, facts(20))
    assert nodes.facts[1].n_train == 10
    assert nodes.nodes == [1]


def test_a_number_is_registered_once(tmp_path) -> None:
    roster = Roster(tmp_path)
    for name, number in (("north", 0), ("south", 1)):
        (tmp_path / "node.pub").write_bytes(node_keys(f"number={number}").public)
        roster.add(tmp_path / "node.pub", name)
        roster.add(tmp_path / "node.pub", name)  # the same once more
    (tmp_path / "node.pub").write_bytes(node_keys("number=1").public)
    with pytest.raises(ConfigError, match="south has this node's number 1"):
        roster.add(tmp_path / "node.pub", "east")
    (tmp_path / "node.pub").write_bytes(node_keys().public)  # does not say
    roster.add(tmp_path / "node.pub", "east")
    assert roster.names() == ["east", "north", "south"]


def test_nobody_is_shown_an_identifier_of_nineteen_digits(caplog: pytest.LogCaptureFixture) -> None:
    """Names first, then numbers; of a node with neither, the end of its identifier."""
    named, numbered, unknown = 1670044137158616279, 5578299902867329551, 1205211233496485792
    participants = Participants()
    participants.names[named] = "hospital-1"
    participants.numbers |= {named: 1, numbered: 2}
    nodes = [named, numbered, unknown]
    assert [participants.label(node) for node in nodes] == ["hospital-1", "node 2", "node ...5792"]
    for node in nodes:
        participants.reject(1, node, "broken")
    participants.note_unresponsive(1, nodes, "train")
    shown = caplog.text + str(participants.rejected) + str(participants.unresponsive)
    assert not [node for node in nodes if str(node) in shown]
    assert [entry["node"] for entry in participants.unresponsive] == [1, 2, "node ...5792"]
    assert unnamed(3) == "node 3", "of a simulation"
