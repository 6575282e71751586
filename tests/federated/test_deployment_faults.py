"""What went wrong in a run is kept with it: updates left out and nodes without an answer, also over a restart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Error, Message

from fedanon.errors import InfeasibleError
from fedanon.federated.deployment.serving import result
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings
from tests.federated.conftest import prepared_app, settings
from tests.federated.test_hostile_updates import each

TRAINING = "train"
#: (round, node id): nodes are numbered from 1, clients from 0
FAULTS = {
    "hostile": frozenset({(1, 2), (3, 2)}),
    "silent": frozenset({(2, 3), (4, 3)}),
    "broken": frozenset({(3, 4)}),
}
UNANSWERED = [{"round": number, "node": node - 1, "during": TRAINING} for number, node in ((2, 3), (3, 4), (4, 3))]


class FaultyGrid(LocalGrid):
    """Nodes which in some rounds send nonsense, an error, or nothing."""

    hostile = silent = broken = frozenset[tuple[int, int]]()

    def _deliver(self, message: Message) -> Message:
        reply = super()._deliver(message)
        if _event(message) in self.hostile:
            return each(lambda array: array[:0])(message, reply)
        return Message(Error(code=0, reason="broken"), reply_to=message) if _event(message) in self.broken else reply

    def send_and_receive(self, messages, *, timeout=None):
        messages = list(messages)
        lost = {message.metadata.dst_node_id for message in messages if _event(message) in self.silent}
        replies = super().send_and_receive(messages, timeout=timeout)
        return [reply for reply in replies if reply.metadata.src_node_id not in lost]


def _event(message: Message) -> tuple[int, int]:
    training = message.metadata.message_type == TRAINING
    return (int(message.metadata.group_id) if training else 0), message.metadata.dst_node_id


def play(chosen: RunSettings, folder: Path | None = None, **faults: frozenset[tuple[int, int]]) -> RunResult:
    grid = FaultyGrid(prepared_app(chosen), chosen)
    for name, events in faults.items():
        setattr(grid, name, events)
    return FederatedRun(grid, chosen, checkpoints=Checkpoints(folder) if folder else None).run()


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_a_resumed_run_tells_its_whole_history(tmp_path, model):
    whole = play(settings(model, rounds=5), **FAULTS)
    play(settings(model, rounds=2), tmp_path, **FAULTS)
    resumed = play(settings(model, rounds=5), tmp_path, **FAULTS)
    assert [(entry["round"], entry["node"]) for entry in whole.rejected] == [(1, 1), (3, 1)]
    assert all(entry["reason"] for entry in whole.rejected)
    assert whole.unresponsive == UNANSWERED
    assert (resumed.rejected, resumed.unresponsive) == (whole.rejected, whole.unresponsive)
    last = Checkpoints(tmp_path).last(settings(model, rounds=5))
    assert last is not None
    assert (last.rejected, last.unresponsive) == (whole.rejected, whole.unresponsive)
    published = result(settings(model, rounds=5), resumed, "tls")
    assert (published["rejected"], published["unresponsive"]) == (whole.rejected, whole.unresponsive)


@pytest.mark.parametrize("model", ["lr", "xgb"])
@pytest.mark.parametrize("stops", [1, 2])
def test_a_round_that_stops_a_run_is_told_too(tmp_path, model, stops):
    chosen = settings(model, rounds=3, min_replies=1.0)
    with pytest.raises(InfeasibleError, match=f"Round {stops}: 4 of 5"):
        play(chosen, tmp_path, silent=frozenset({(stops, 3)}))
    resumed = play(chosen, tmp_path)
    assert resumed.unresponsive == [{"round": stops, "node": 2, "during": TRAINING}]
    for one, other in zip(resumed.parameters, play(chosen).parameters, strict=True):
        np.testing.assert_array_equal(one, other)


def test_checkpoints_of_before_are_read(tmp_path):
    chosen = settings("lr", rounds=2)
    play(chosen, tmp_path)
    [path] = tmp_path.iterdir()
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "meta"}
    meta = np.frombuffer(b'{"round": 1, "rounds": []}', dtype=np.uint8)
    np.savez(path, meta=meta, **arrays)
    last = Checkpoints(tmp_path).last(chosen)
    assert last is not None
    assert (last.round_number, last.rejected, last.unresponsive) == (1, [], [])


def test_a_result_tells_what_was_spent():
    chosen = settings(rounds=2, dp_settings={"epsilon": 2, "randomness": "seeded"})
    published = result(chosen, play(chosen), "tls")
    assert published["dp"]["epsilon_spent"] == pytest.approx(2.0, rel=1e-6)
    assert published["dp"]["epsilon_spent"] == published["rounds"][-1]["epsilon_spent"]
    assert "dp" not in result(settings(rounds=1), play(settings(rounds=1)), "tls")
