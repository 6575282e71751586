"""What nodes tell their server at the end of a run about what has left them: numbers, as in their own logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import MetricRecord

from fedanon.errors import UpdateRejectedError
from fedanon.federated import wire
from fedanon.federated.deployment.egress_log import read_egress
from fedanon.federated.deployment.serving import result
from fedanon.federated.door import content_bytes
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.learning.model_card import make_card
from tests.federated.conftest import prepared_app, settings
from tests.federated.hostile_server import TEMPLATE, WIDTH, HostileServer, grid_of, make_node


def test_a_node_counts_for_its_server_what_left_in_the_run(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path))
    assert server.ask(wire.TELL_EGRESS) is not None, "before anything left"
    server.start(TEMPLATE)  # what left in another run is not told
    model = [np.zeros(WIDTH), np.zeros(1)]
    for kind in ("query", "train", "evaluate", "train"):
        server.ask(kind, model)
    assert server.ask(wire.COUNT) is None
    sent = sum(content_bytes(reply) for reply in server.replies[1:])
    reply = server.ask(wire.TELL_EGRESS)
    assert reply is not None
    told = {"releases": 1, "facts": 1, "updates": 2, "evaluations": 1, "counts": 0, "refusals": 1, "bytes": sent}
    assert wire.read_egress(reply) == told
    [_, run] = read_egress(server.node.folder)
    assert sum(run.bytes.values()) == sent + content_bytes(reply), "which leaves too, and is noted"


def test_numbers_of_what_left_are_checked(tmp_path: Path) -> None:
    reply = HostileServer(make_node(tmp_path)).ask(wire.TELL_EGRESS)
    assert reply is not None
    for wrong in ({"bytes": -1}, {"bytes": 1.5}, {"more": 1}, {"bytes": 2**60}):
        reply.content["metrics"] = MetricRecord({**dict.fromkeys(wire.EGRESS, 1), **wrong})
        with pytest.raises(UpdateRejectedError, match="not the agreed numbers"):
            wire.read_egress(reply)


def test_the_card_and_the_result_of_a_deployed_run_say_it(tmp_path: Path) -> None:
    run = replace(TEMPLATE, rounds=2)
    nodes = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        nodes.append(make_node(tmp_path / str(number), number=number))
    outcome = FederatedRun(grid_of(nodes, run), run, ask_egress=True).run()
    egress = make_card(run, outcome, security="tls")["egress"]
    assert [egress[str(number)]["updates"] for number in range(2)] == [2, 2]
    logs = [sum(read_egress(node.folder)[0].bytes.values()) for node in nodes]
    assert [egress[str(number)]["bytes"] for number in range(2)] == [log - 8 * len(wire.EGRESS) for log in logs]
    assert result(run, outcome, "tls")["counted"] == "records"


def test_people_are_counted_where_the_schema_says_who_is_who(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    schema = tmp_path / "schema.toml"
    schema.write_text("one_row_per_person = true\n" + schema.read_text(encoding="utf-8"), encoding="utf-8")
    run = replace(TEMPLATE, rounds=1)
    outcome = FederatedRun(grid_of([node], run), run).run()
    assert result(run, outcome, "tls")["counted"] == make_card(run, outcome, security="tls")["counted"] == "people"


def test_nodes_of_a_simulation_have_nothing_to_tell() -> None:
    chosen = settings()
    outcome = FederatedRun(LocalGrid(prepared_app(chosen), chosen), chosen, ask_egress=True).run()
    assert outcome.egress == {}
    assert outcome.unresponsive == []
