"""`fedanon server` and `fedanon federation`, where no process of Flower's is needed."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import numpy as np
import pytest

from fedanon.datasets import load
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.deployment.server import Server
from fedanon.federated.deployment.server_folder import checkpoints_in
from fedanon.io.keys import node_keys
from fedanon.learning.checkpoints import Checkpoint
from fedanon.learning.suspicion import MIN_ROUNDS, Suspicion
from tests.cli.conftest import Run


@pytest.fixture
def server(tmp_path: Path, run: Run) -> Server:
    with socket.socket() as probe:  # nothing listens there
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = run("server", "init", tmp_path / "server", "--port", str(port), "--days", "29")
    assert done.code == 0, done.err
    return Server(tmp_path / "server")


def test_a_node_is_registered_and_removed(tmp_path: Path, run: Run, server: Server) -> None:
    (tmp_path / "node.pub").write_bytes(node_keys().public)
    register = ("server", "register", server.folder, tmp_path / "node.pub", "--name", "ward")
    assert run(*register).code == 0
    unknown = run("server", "remove", server.folder, "wart")
    assert (unknown.code, unknown.err) == (2, "error: No node named 'wart' is registered; registered: ward.\n")
    removed = run("server", "remove", server.folder, "ward")
    assert removed.code == 0
    assert "refused from the next `fedanon server run` on" in removed.out
    assert "Left are 0 nodes, and a run waits for 2" in removed.out
    again = run(*register)
    assert again.code == 2
    assert "This key was removed" in again.err


def test_status_warns_of_a_certificate_until_it_is_renewed(run: Run, server: Server) -> None:
    before = run("federation", "status", server.folder)
    assert "in 28 days" in before.out
    assert "`fedanon server renew`" in before.err
    assert "ca.crt" not in before.err
    renewed = run("server", "renew", server.folder, "--days", "60")
    assert "59 days" in renewed.out
    assert run("federation", "status", server.folder).err == ""
    assert run("federation", "status", server.folder, "--json").json["days_left"] == {"server.crt": 59, "ca.crt": 3649}


def test_status_tells_who_was_left_out_and_who_was_silent(run: Run, server: Server) -> None:
    rejected = [{"round": 2, "node": 1, "reason": "it came twice"}]
    silent = [{"round": 1, "node": 0, "during": "train"}]
    checkpoint = Checkpoint(2, [np.zeros(1)], [], rejected, silent)
    checkpoints_in(server.folder).save(server.config.run, checkpoint)
    found = run("federation", "status", server.folder, "--json").json
    assert (found["rejected"], found["unresponsive"]) == (rejected, silent)
    shown = run("federation", "status", server.folder).out
    assert shown.index("no answer to: train") < shown.index("left out: it came twice")


def test_status_tells_how_each_node_behaved(run: Run, server: Server) -> None:
    assert run("federation", "status", server.folder, "--json").json["conduct"] == []
    suspicion, rng = Suspicion(), np.random.default_rng(0)
    for _ in range(MIN_ROUNDS):  # one of nine sends updates unlike the others', and those of 9 are refused
        updates = {i: rng.normal(size=20) + 50.0 * (i == 7) for i in range(9)}
        suspicion.look(updates, dict.fromkeys(updates, 100), refused=[9])
    rejected = [{"round": i, "node": 9, "reason": "it is not finite"} for i in (1, 2, 3)]
    rejected += [{"round": 3, "node": 2, "reason": "it came twice"}]
    silent = [{"round": 1, "node": 4, "during": "train"}]
    checkpoint = Checkpoint(3, [np.zeros(1)], [], rejected, silent, suspicion.to_keep())
    checkpoints_in(server.folder).save(server.config.run, checkpoint)

    found = run("federation", "status", server.folder, "--json").json["conduct"]
    assert [entry["node"] for entry in found] == [9, 7, 2, 4, 0, 1, 3, 5, 6, 8]
    by_client = {entry["node"]: entry for entry in found}
    assert [client for client, entry in by_client.items() if entry["suspect"]] == suspicion.nodes[::-1] == [9, 7]
    assert {client: entry["left_out"] for client, entry in by_client.items() if entry["left_out"]} == {9: 3, 2: 1}
    assert by_client[9]["reasons"] == {"it is not finite": 3}
    assert (by_client[4]["no_answer"], by_client[7]["rounds_flagged"], by_client[9]["refused"]) == (1, 3, 3)

    shown = run("federation", "status", server.folder).out
    assert re.search(r"suspects +│ +9, 7 │", shown)
    rows = re.findall(r"│ (\d+) +│ +(\d+) │ +(\d+) │ +\d+ │ +\d+ │ +\S+ │ (yes|no) ", shown)
    assert rows == [("9", "3", "0", "yes"), ("7", "0", "0", "yes"), ("2", "1", "0", "no"), ("4", "0", "1", "no")]
    assert "It is no proof" in shown


def test_a_whole_federation_is_made_at_once(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    run("federation", "init", folder, "--nodes", "3", "--dataset", "adult")
    assert sorted(path.name for path in folder.iterdir()) == ["hospital-0", "hospital-1", "hospital-2", "server"]
    nodes = [NodeFolder(folder / f"hospital-{number}") for number in range(3)]
    for node in nodes:
        node.check()
        assert len(list((node.folder / "peers").glob("*.pub"))) == 3
    assert [node.config.number for node in nodes] == [0, 1, 2]
    assert Server(folder / "server").roster.names() == ["hospital-0", "hospital-1", "hospital-2"]
    assert {path.stat().st_mode & 0o077 for path in folder.rglob("*")} == {0}
    rows = [len((node.folder / "data.csv").read_text().splitlines()) - 1 for node in nodes]
    assert sum(rows) == len(load("adult"))
    assert max(rows) - min(rows) <= 1
    assert "exists and is not an empty folder" in run("federation", "init", folder).err
