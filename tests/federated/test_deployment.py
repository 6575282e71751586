"""Real processes on this machine: TLS, keys of nodes, a run like the local engine's, a kill and a resume."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import re
import signal
import sqlite3
import ssl
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.proto.fab_pb2 import Fab, GetFabResponse
from flwr.proto.node_pb2 import Node
from flwr.proto.run_pb2 import GetRunResponse, Run
from flwr.supercore.task_identity import TaskIdentity

from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.errors import PrivacyViolationError
from fedanon.federated import engines, wire
from fedanon.federated.client import client_app
from fedanon.federated.deployment import worker
from fedanon.federated.deployment.certificates import new_authority
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.egress_log import read_egress
from fedanon.federated.deployment.fleet import Fleet
from fedanon.federated.deployment.folders import write_private
from fedanon.federated.deployment.link import Link
from fedanon.federated.deployment.roster import let_in
from fedanon.federated.deployment.server import status
from fedanon.federated.deployment.server_folder import checkpoints_in
from fedanon.federated.deployment.superlink import may_pass
from fedanon.federated.door import check_floor
from fedanon.federated.server import FederatedRun
from fedanon.learning.node import Node as LearningNode
from fedanon.learning.saved_model import SavedModel
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters
from tests.federated.deployed import PATIENCE, STUDY, Deployed, deployed, end_group, new_node, wait_until, write_tables

RUN = """
method = "mondrian"
model = "lr"
rounds = {rounds}
evaluate_every = {rounds}
method_settings = {{ k = 4 }}
"""
EVIL = """
[project]
name = "app"
version = "1"
[tool.flwr.app]
publisher = "evil"
[tool.flwr.app.components]
serverapp = "app:server"
clientapp = "app:client"
[tool.flwr.app.config]
rounds = 2
"""
# what an orphan of Flower's may still hold when the test ends
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def local_result(found: Deployed, monkeypatch: pytest.MonkeyPatch) -> Parameters:
    """The final model of the local engine on the same tables."""
    settings = found.server.config.run
    monkeypatch.setattr(engines, "n_parts", lambda _: len(found.tables))
    app = client_app(lambda context, _: (found.table(n := int(context.node_config["partition-id"])), n))
    return FederatedRun(engines.LocalGrid(app, settings), settings).run().parameters


def deployed_result(found: Deployed) -> Parameters:
    last = checkpoints_in(found.server.folder).last(found.server.config.run)
    assert last is not None
    assert last.round_number == found.server.config.run.rounds, found.said("server.log")
    return last.parameters


def checkpoint_round(found: Deployed) -> int:
    last = checkpoints_in(found.server.folder).last(found.server.config.run)
    return last.round_number if last else 0


def assert_same(one: Parameters, other: Parameters) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_three_hospitals_reach_the_model_of_the_local_engine(tmp_path, monkeypatch):
    with deployed(tmp_path, RUN.format(rounds=2)) as found:
        write_private(found.server.folder / "schema.toml", (tmp_path / "schema.toml").read_text(encoding="utf-8"))
        server = found.start_server()
        found.start_node(0)  # too early: it tries again until its key is known
        wait_until(lambda: lets_in(found, 3), "the keys are not known", alive=server)
        for number in (1, 2):
            found.start_node(number)
        result = found.finish(server)
        assert_same(deployed_result(found), local_result(found, monkeypatch))
        assert result["security"] == "tls"
        assert result["rejected"] == result["unresponsive"] == []
        assert sorted(result["facts"]) == ["0", "1", "2"]
        assert all(fact["measures"]["k_reached"] >= 4 for fact in result["facts"].values())
        # anonymized once a node, though every message had a process of its own; raw rows are not kept
        stores = [list((node.folder / "store").iterdir()) for node in found.nodes]
        assert [len(entries) for entries in stores] == [1, 1, 1]
        # databases, checkpoints, results, ledgers and logs: nothing is open to other users of a machine
        folders = (found.server.folder, *(node.folder for node in found.nodes))
        opened = [path for folder in folders for path in folder.rglob("*") if path.stat().st_mode & 0o077]
        assert opened == []
        assert any(path.name == "state.db" for path in found.server.folder.iterdir())
        assert_usable(found, result)
        assert_named(found, result)


def assert_usable(found: Deployed, result: dict[str, Any]) -> None:
    """A model that is applied without another file, and a card that says what left the nodes."""
    [folder] = (found.server.folder / "models").iterdir()
    model = SavedModel.read(folder)
    assert result["counted"] == model.card["counted"] == "records"
    assert len(model.predict(found.tables[0])) == len(found.table(0))
    for number, node in enumerate(found.nodes):
        [run] = read_egress(node.folder)
        told = model.card["egress"][str(number)]
        assert (told["facts"], told["updates"], told["evaluations"], told["refusals"]) == (1, 2, 1, 0)
        assert told["bytes"] + 8 * len(told) == sum(run.bytes.values())


def assert_named(found: Deployed, result: dict[str, Any]) -> None:
    """Nodes are known by their names: Flower's identifiers of them, which each keeps, stand nowhere people look."""
    numbers = [(node.folder / "node.id").read_text().strip() for node in found.nodes]
    assert all(len(number) > 10 for number in numbers)
    folders = [found.server.folder / name for name in ("results", "models")]
    texts = [path.read_text(errors="replace") for folder in folders for path in folder.rglob("*.[jm]*")]
    texts += [found.said("server.log"), json.dumps(status(found.server.folder))]
    assert len(texts) == 6
    assert not [number for number in numbers for text in texts if number in text]
    assert sorted(result["nodes"].values()) == found.server.roster.names()


def control_api(found: Deployed, headers: dict[str, str] | None = None) -> int:
    """The status of a request to the control API; a proxy on this machine may say for whom it asks."""
    context = ssl.create_default_context(cafile=str(found.server.folder / "ca.crt"))
    connection = http.client.HTTPSConnection("127.0.0.1", found.server.config.port, context=context, timeout=10)
    connection.request("POST", "/v1/control/list-runs", headers=headers or {})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture(scope="module")
def waiting(tmp_path_factory) -> Iterator[tuple[Deployed, contextlib.ExitStack]]:
    """A server of two nodes that runs without a run; the stack ends its SuperLink."""
    folder = tmp_path_factory.mktemp("waiting")
    with deployed(folder, RUN.format(rounds=1), nodes=2) as found, contextlib.ExitStack() as running:
        start_link(found, running)
        yield found, running


def start_link(found: Deployed, running: contextlib.ExitStack) -> None:
    """Start the SuperLink, and let in all nodes that are registered."""
    link = running.enter_context(Link(found.server.folder, found.server.config, insecure=False))
    assert let_in(found.server.roster.keys(), link.NAME, link.environment) == []


def new_lines(found: Deployed) -> Callable[[], str]:
    """What the SuperLink logs from now on."""
    log = found.server.folder / "superlink.log"
    start = log.stat().st_size
    return lambda: log.read_bytes()[start:].decode(errors="replace")


def test_a_strange_key_and_a_strange_server_are_refused(waiting, tmp_path):
    found, _ = waiting
    logged, port = new_lines(found), found.server.config.port
    (tmp_path / "other.crt").write_bytes(new_authority().certificate)
    found.nodes.append(new_node(found, 2, found.tables[0], port=port))  # never registered
    found.nodes.append(new_node(found, 3, found.tables[0], port=port, ca=tmp_path / "other.crt"))
    assert control_api(found) != 403
    assert control_api(found, {"X-Forwarded-For": "192.0.2.7"}) == 403
    strangers = [found.start_node(number, "--tries", "1") for number in (2, 3)]
    assert [stranger.wait(PATIENCE) for stranger in strangers] == [5, 5]
    assert "No SuperNode found with the given public key" in logged()
    assert "CERTIFICATE_VERIFY_FAILED" in found.said("node3.log") or "certificate" in found.said("node3.log").lower()


@pytest.mark.slow
def test_a_killed_server_resumes_to_the_same_model(tmp_path, monkeypatch):
    with deployed(tmp_path, RUN.format(rounds=15), nodes=2) as found:
        server = found.start_server()
        for number in range(2):
            found.start_node(number)
        wait_until(lambda: checkpoint_round(found) >= 2, "no second round", alive=server)
        end_group(server, kill=True)
        assert checkpoint_round(found) < 15
        refused = found.start("server", "run", found.server.folder, log="refused.log")
        assert refused.wait(PATIENCE) == 2
        assert "--resume" in found.said("refused.log")
        found.server.renew(days=2)  # the nodes, which run on, know it by the ca.crt they have
        found.finish(found.start_server("--resume"))
        assert_same(deployed_result(found), local_result(found, monkeypatch))


@pytest.mark.slow
def test_a_killed_node_does_not_stop_the_run_and_comes_back(tmp_path):
    with deployed(tmp_path, RUN.format(rounds=60).replace("evaluate_every = 60", "evaluate_every = 1")) as found:
        server = found.start_server()
        nodes = [found.start_node(number) for number in range(3)]
        wait_until(lambda: checkpoint_round(found) >= 1, "no first round", alive=server)
        os.killpg(nodes[2].pid, signal.SIGKILL)
        # before it is missed, it could come back for the very message it was sent
        wait_until(lambda: missed_rounds(found), "it is not missed", alive=server)
        found.start_node(2)
        silent = found.finish(server)["unresponsive"]
        assert checkpoint_round(found) == 60
        assert {entry["node"] for entry in silent} == {2}
        missed = missed_rounds(found)
        assert 60 not in missed, "it is back before the end"
        assert missed == list(range(missed[0], missed[-1] + 1))


def missed_rounds(found: Deployed) -> list[int]:
    """Rounds of training in which a client did not answer, so far."""
    last = checkpoints_in(found.server.folder).last(found.server.config.run)
    return [entry["round"] for entry in last.unresponsive if entry["during"] == "train"] if last else []


@pytest.mark.slow
def test_a_node_removed_during_a_run_is_left_out_of_the_rest(tmp_path):
    with deployed(tmp_path, RUN.format(rounds=40)) as found:
        server = found.start_server()
        for number in range(3):
            found.start_node(number)
        wait_until(lambda: checkpoint_round(found) >= 1, "no first round", alive=server)
        assert found.server.remove("hospital-2") is True
        silent = found.finish(server)["unresponsive"]
        missed = [entry["round"] for entry in silent if entry["during"] == "train"]
        assert {entry["node"] for entry in silent} == {2}
        assert missed == list(range(missed[0], 41))
        assert missed_rounds(found) == missed


def test_a_removed_node_is_refused_at_once_and_for_good(waiting):
    found, running = waiting
    server, logged = found.server, new_lines(found)
    node = found.start_node(0, "--tries", "1")
    wait_until(lambda: "Activated node_id" in logged(), "it does not come", alive=node)
    assert server.remove("hospital-0") is True
    assert node.wait(PATIENCE) == 5
    # whichever of its calls comes first
    assert re.search(r'/v1/fleet/[a-z-]+ HTTP/1.1" 401', logged())
    assert statuses(found) == ["registered", "unregistered"]
    # a server that does not run learns it when it starts
    running.close()
    assert server.remove("hospital-1") is False
    logged = new_lines(found)
    start_link(found, running)
    assert statuses(found) == ["unregistered", "unregistered"]
    assert found.start_node(1, "--tries", "1").wait(PATIENCE) == 5
    assert "No SuperNode found with the given public key" in logged()


def statuses(found: Deployed) -> list[str]:
    """Of all keys in Flower's own database."""
    path = found.server.folder / "state.db"
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as state:
        return sorted(status for [status] in state.execute("SELECT status FROM node"))


def lets_in(found: Deployed, nodes: int) -> bool:
    """Whether the SuperLink, which may still be starting, knows the keys of so many nodes, online or not."""
    with contextlib.suppress(sqlite3.OperationalError):
        known = statuses(found)
        return len(known) == nodes and "unregistered" not in known
    return False


def test_init_makes_private_files_and_overwrites_nothing(tmp_path: Path):
    with deployed(tmp_path, RUN.format(rounds=1), nodes=1) as found:
        for folder in (found.server.folder, found.nodes[0].folder):
            assert folder.stat().st_mode & 0o777 == 0o700
            assert {path.stat().st_mode & 0o077 for path in folder.rglob("*")} == {0}


def test_the_control_api_is_closed_to_other_machines():
    for path in (
        "/v1/control/start-run",
        "/v1/control/register-node",
        "/v1/runtime/acquire-task",
        "/docs",
        "/",
        "//v1/fleet",
    ):
        assert not may_pass(path, ("192.0.2.7", 4000))
        assert not may_pass(path, ("192.0.2.7", 4000), ("192.0.2.1", 9443))
        assert not may_pass(path, None, None)
        assert may_pass(path, ("127.0.0.1", 4000))
        assert may_pass(path, ("192.0.2.1", 4000), ("192.0.2.1", 9443))
    assert may_pass("/v1/fleet/activate-node", ("192.0.2.7", 4000))


def test_a_node_runs_the_installed_app_whatever_the_bundle_holds(tmp_path):
    [table] = write_tables(tmp_path, 1, 60)
    paths = {"data": str(table), "schema": str(tmp_path / "schema.toml")}
    config = NodeConfig(server="127.0.0.1:1", number=7, min_k=1, **paths, **STUDY).for_flower(tmp_path)
    line = Fleet("127.0.0.1:1", config, ca=None, key=None, memory=tmp_path / "node.id")
    line._node, line._client = Node(node_id=5), EvilServer()
    context = line._context(3)
    assert context.run_config["rounds"] == 2
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 3, 0
    asked = wire.request(5, "query", 0, wire.request_content(0, wire.pack_arrays([])))
    reply = worker.answer(asked, context, lambda: None)
    assert not reply.has_error(), reply.error
    assert wire.read_facts(reply)[0] == 7


class EvilServer:
    """A SuperLink with a bundle that must never be imported."""

    def GetRun(self, request: Any) -> Any:  # noqa: N802
        return GetRunResponse(run=Run(run_id=request.run_id, fab_id="evil/app", fab_version="1", fab_hash="0"))

    def GetFab(self, request: Any) -> Any:  # noqa: N802
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("pyproject.toml", EVIL)
            archive.writestr("app.py", "raise SystemExit('foreign code was run')")
        return GetFabResponse(fab=Fab(hash_str="0", content=buffer.getvalue()))


def test_a_node_refuses_a_run_below_its_own_k(tmp_path):
    [table] = write_tables(tmp_path, 1, 60)
    node = LearningNode(read_table(table, Schema.read(tmp_path / "schema.toml")), RunSettings(method="identity"), 0)
    with pytest.raises(PrivacyViolationError, match="does not reach the k of 2"):
        check_floor(node, 2)
    check_floor(node, 1)
