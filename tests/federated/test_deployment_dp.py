"""Differentially private training by real processes: model and budget of the local engine, nothing raw on the wire."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from fedanon.federated import engines
from fedanon.federated.client import client_app
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.server import FederatedRun
from fedanon.learning.dp_training import read_note
from fedanon.learning.rounds import RunResult
from fedanon.privacy.accounting.accountant import epsilon_of
from tests.federated.deployed import PATIENCE, Deployed, deployed, end_group, wait_until
from tests.federated.test_deployment import assert_same, checkpoint_round, deployed_result
from tests.federated.test_wire import NODES, Proxy, canaries, run_through, sightings

RUN = """
model = "lr"
method = "{method}"
rounds = 3
evaluate_every = 1
method_settings = {{ {method_settings} }}
dp_settings = {{ mode = "{mode}", epsilon = 2, randomness = "{randomness}" }}
"""
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def run_of(mode: str, randomness: str) -> str:
    method, more = ("identity", "") if mode == "record" else ("mondrian", "k = 10")
    return RUN.format(mode=mode, randomness=randomness, method=method, method_settings=more)


def local_outcome(found: Deployed, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """What the local engine makes of the same tables."""
    settings = found.server.config.run
    monkeypatch.setattr(engines, "n_parts", lambda _: len(found.tables))
    app = client_app(lambda context, _: (found.table(n := int(context.node_config["partition-id"])), n))
    return FederatedRun(engines.LocalGrid(app, settings), settings).run()


def run_watched(found: Deployed, proxy: Proxy) -> dict[str, Any]:
    """The result of a run through a proxy."""
    run_through(proxy, found)
    [path] = (found.server.folder / "results").iterdir()
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


@pytest.mark.parametrize("mode", ["record", "local", "central"])
def test_hospitals_reach_the_model_and_the_budget_of_the_local_engine(tmp_path, monkeypatch, mode):
    proxy = Proxy()
    try:
        with deployed(tmp_path, run_of(mode, "seeded"), nodes=NODES, rows=300, min_k=1, through=proxy.port) as found:
            result, expected = run_watched(found, proxy), local_outcome(found, monkeypatch)
            assert_same(deployed_result(found), expected.parameters)
    finally:
        proxy.close()
    assert result["dp"] == expected.dp
    assert result["dp"]["epsilon_spent"] == pytest.approx(2.0, rel=1e-6)
    assert [entry["epsilon_spent"] for entry in result["rounds"]] == [e["epsilon_spent"] for e in expected.rounds]
    assert all(fact["measures"] == {} for fact in result["facts"].values())
    assert len(proxy.captured) > 10_000
    assert sightings(proxy.captured, canaries(tmp_path)) == 0


def test_nodes_count_what_a_run_tells_however_often_it_is_started(tmp_path):
    run = run_of("record", "secure").replace("rounds = 3", "rounds = 6")
    with deployed(tmp_path, run, nodes=NODES, rows=300, min_k=1) as found:
        for node in found.nodes:
            ask_for_budget(node, 2.0)
        server = found.start_server()
        for number in range(NODES):
            found.start_node(number)
        wait_until(lambda: checkpoint_round(found) >= 2, "no second round", alive=server)
        end_group(server, kill=True)
        spent = found.finish(found.start_server("--resume"))["dp"]
        assert spent["promised"]
        assert spent["rounds_spent"] == 6
        assert spent["epsilon_spent"] == pytest.approx(2.0, rel=1e-6)
        assert all(0 < epsilon < 2.0 * (1 + 1e-6) for epsilon in told(found))
        # a server that forgets what it has asked
        shutil.rmtree(found.server.folder / "checkpoints")
        again = found.start_server()
        assert again.wait(PATIENCE) != 0
        assert "This node refuses to answer: budget." in found.said("server.log")
        assert "The rows of this node have given away what a privacy budget of 2 allows" in found.said("node0.log")
        assert all(epsilon < 2.0 * (1 + 1e-6) for epsilon in told(found))


def ask_for_budget(node: NodeFolder, epsilon: float) -> None:
    path = node.folder / "node.toml"
    before = path.read_text(encoding="utf-8")
    after = before.replace("max_epsilon = 0.0", f"max_epsilon = {epsilon}")
    assert after != before
    path.write_text(after, encoding="utf-8")


def told(found: Deployed) -> list[float]:
    """What every node has counted."""
    return [epsilon_of(read_note(node.folder / "told.json"), 1e-5) for node in found.nodes]
