"""`fedanon server` and `fedanon federation`, where no process of Flower's is needed."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from fedanon.federated.checkpoints import Checkpoint
from fedanon.federated.deployment.keys import node_keys
from fedanon.federated.deployment.server import Server
from fedanon.federated.deployment.serving import checkpoints_in
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
    rejected = [{"round": 2, "client": 1, "reason": "it came twice"}]
    silent = [{"round": 1, "client": 0, "during": "train"}]
    checkpoint = Checkpoint(2, [np.zeros(1)], [], rejected, silent)
    checkpoints_in(server.folder).save(server.config.run, checkpoint)
    found = run("federation", "status", server.folder, "--json").json
    assert (found["rejected"], found["silent"]) == (rejected, silent)
    shown = run("federation", "status", server.folder).out
    assert shown.index("no answer to: train") < shown.index("left out: it came twice")
