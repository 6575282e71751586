"""A server that comes again: runs repeated with other settings or peers, ledgers that are gone, and failures."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Message

from fedanon.federated import wire
from fedanon.federated.deployment import worker
from fedanon.federated.deployment.egress_log import read_egress
from fedanon.federated.deployment.node import NodeFolder
from fedanon.joint.axes import make_axes
from fedanon.joint.masks import new_secret, pack_keys, public_key
from fedanon.joint.queries import leaf_count_query
from fedanon.joint.regions import GrowingRegions
from fedanon.learning.egress_ledger import EgressLedger
from tests.federated.hostile_server import TEMPLATE, WIDTH, HostileServer, grid_of, make_node, write_clinic
from tests.federated.test_egress import kinds, table_of
from tests.federated.test_egress_counts import JOINT

MODEL = [np.zeros(WIDTH), np.zeros(1)]
JOINT_SETTINGS = {"k": 10, "k_local": 5, "counts": "secure_dp"}


def come_again(server: HostileServer, **settings: Any) -> None:
    """The same run to a node that remembers nothing of it but its ledger: of old runs it keeps no context."""
    server._grid = grid_of([server.node], replace(TEMPLATE, **settings), server._run_id)


def count_at(server: HostileServer, step: int, peers: dict[int, bytes]) -> Message | None:
    joined = server.ask(wire.JOIN)
    if joined is None:
        return None
    number, _, key, _, _ = wire.read_join(joined)
    axes = make_axes(table_of(server.node).schema)
    query = leaf_count_query(GrowingRegions([axis.n_bins for axis in axes]), len(axes))
    return server.ask(wire.COUNT, [*query.to_arrays(), *pack_keys({number: key} | peers)], step)


def some_peers(*numbers: int) -> dict[int, bytes]:
    return {number: public_key(new_secret()) for number in numbers}


def test_a_run_has_the_settings_it_began_with(tmp_path: Path) -> None:
    """Counts with much noise are paid for; then the same run asks for little noise."""
    node = make_node(tmp_path, table=write_clinic(tmp_path), max_releases=9, peer_keys="")
    server, peers = HostileServer(node), some_peers(1, 2)
    come_again(server, **JOINT, method_settings=JOINT_SETTINGS | {"epsilon": 0.001})
    assert count_at(server, 1, peers) is not None
    come_again(server, **JOINT, method_settings=JOINT_SETTINGS | {"epsilon": 1.0})
    assert count_at(server, 2, peers) is None
    assert kinds(server) == {"run"}
    assert EgressLedger(node.folder / "egress.json").read().count_epsilon == 0.001


def test_a_run_has_the_peers_it_began_with(tmp_path: Path) -> None:
    """The difference of two exact sums would be the counts of the node that is missing in one."""
    node = make_node(tmp_path, table=write_clinic(tmp_path), peer_keys="", counts="secure")
    server = HostileServer(node)
    again = {**JOINT, "method_settings": {"k": 10, "k_local": 5, "counts": "secure"}}
    answered = []
    for step, numbers in enumerate([(1, 2, 3), (1, 2, 3), (1, 2)], 1):
        come_again(server, **again)
        answered.append(count_at(server, step, some_peers(*numbers)) is not None)
    assert answered == [True, True, False]
    assert kinds(server) == {"peers"}


def test_a_run_of_which_the_notes_are_forgotten_pays_again(tmp_path: Path) -> None:
    node = make_node(tmp_path, table=write_clinic(tmp_path), max_releases=9, peer_keys="")
    server, ledger = HostileServer(node), EgressLedger(node.folder / "egress.json")
    for _ in range(2):
        come_again(server, **JOINT, method_settings=JOINT_SETTINGS | {"epsilon": 0.4})
        assert count_at(server, 1, some_peers(1, 2)) is not None
        with ledger.changing() as note:
            note.runs.clear()  # as after ten thousand other runs
    assert ledger.read().count_epsilon == pytest.approx(0.8)


def test_a_ledger_that_is_gone_is_not_a_new_one(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path))
    assert server.ask("query") is not None
    (server.node.folder / "egress.json").unlink()
    server.start(replace(TEMPLATE, method_settings={"k": 6}))
    assert server.ask("query") is None
    assert kinds(server) == {"policy"}
    (server.node.folder / "egress.jsonl").rename(tmp_path / "kept.jsonl")  # the node's people begin anew
    assert server.ask("query") is not None


def test_a_log_that_cannot_be_written_is_not_told_to_the_server(tmp_path: Path) -> None:
    server = HostileServer(make_node(tmp_path))
    assert server.ask("query") is not None
    with (server.node.folder / "egress.jsonl").open("a", encoding="ascii") as file:
        file.write("no line")
    for kind in ("query", "train", "evaluate", wire.JOIN):
        assert server.ask(kind, MODEL) is None
    assert kinds(server) == {"log"}


# ---- messages that no handler answers ------------------------------------------------------------


def worker_reply(node: NodeFolder, kind: str) -> Message:
    """What a deployed node's worker answers."""
    context: Context = grid_of([node], TEMPLATE)._contexts[1]
    content = wire.request_content(1, wire.pack_arrays(MODEL))
    message = wire.request(1, kind, 1, content)
    message.metadata.__dict__.update(_run_id=1, _src_node_id=2)
    return worker.answer(message, context, lambda: None)


def last_line(node: NodeFolder) -> dict[str, Any]:
    line: dict[str, Any] = json.loads((node.folder / "egress.jsonl").read_text().splitlines()[-1])
    return line


def test_messages_of_unknown_kinds_are_refusals_too(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    reply = worker_reply(node, "query.rows")
    assert reply.error.reason == "This node refuses to answer: failure."
    assert last_line(node)["event"] == "refusal"
    assert last_line(node)["facts"]["kind"] == "message"


def test_a_worker_that_is_killed_leaves_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node(tmp_path)
    monkeypatch.setattr(worker, "client_app", lambda: os.kill(os.getpid(), signal.SIGKILL))
    reply = worker_reply(node, "evaluate")
    assert reply.error.reason == "This node refuses to answer: killed."
    assert last_line(node)["facts"]["refusal"] == "killed"
    [run] = read_egress(node.folder)
    assert sum(run.refusals.values()) == 1
