"""The local engine: reproducible to the bit, equal to a plain loop, resumable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message
from flwr.clientapp import ClientApp

from fedanon.data.schema import Numeric
from fedanon.errors import FedanonError, InfeasibleError
from fedanon.federated import wire
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.federated.simulation import simulate
from fedanon.federated.sources import load_node_table, partition_rows, whole_table
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.node import Node
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.models.base import Parameters
from tests.federated.conftest import settings

ANONYMOUS = {"method": "mondrian", "method_settings": {"k": 5}}


def run(chosen: RunSettings, checkpoints: Checkpoints | None = None) -> RunResult:
    return FederatedRun(LocalGrid(client_app(), chosen), chosen, checkpoints=checkpoints).run()


def same(first: Parameters, second: Parameters) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("model", ["lr", "xgb", "mlp"])
def test_same_seed_same_bytes(model: str) -> None:
    first, second = run(settings(model, **ANONYMOUS)), run(settings(model, **ANONYMOUS))
    assert same(first.parameters, second.parameters)
    assert first.rounds == second.rounds
    other = run(settings(model, seed=1, **ANONYMOUS))
    assert not same(first.parameters, other.parameters) if model != "xgb" else True


def test_equals_a_plain_loop() -> None:
    chosen = settings("lr", rounds=6, **ANONYMOUS)
    parts = partition_rows("adult", "iid", 5, 0)
    nodes = [Node(whole_table("adult").select_rows(rows), chosen, i) for i, rows in enumerate(parts)]
    parameters = make_model(chosen).initial(nodes[0].encoding.width)
    for number in range(1, 7):
        updates = [node.train(parameters, number) for node in nodes]
        weights = [update.n_examples for update in updates]
        columns = zip(*(update.parameters for update in updates), strict=True)
        parameters = [np.average(arrays, axis=0, weights=weights) for arrays in columns]
    for ours, loop in zip(run(chosen).parameters, parameters, strict=True):
        np.testing.assert_allclose(ours, loop, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", ["lr", "mlp"])
def test_one_client_equals_local_training(model: str) -> None:
    chosen = settings(model, nodes=1, rounds=5)
    node = Node(whole_table("adult").select_rows(partition_rows("adult", "iid", 1, 0)[0]), chosen, 0)
    parameters = node.model.initial(node.encoding.width)
    for number in range(1, 6):
        parameters = node.train(parameters, number).parameters
    for ours, local in zip(run(chosen).parameters, parameters, strict=True):
        np.testing.assert_allclose(ours, local, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_a_killed_run_resumes_to_the_same_model(model: str, tmp_path: Path) -> None:
    whole = run(settings(model, rounds=6, **ANONYMOUS))
    store = Checkpoints(tmp_path)
    run(settings(model, rounds=3, **ANONYMOUS), store)
    resumed = run(settings(model, rounds=6, **ANONYMOUS), store)
    assert same(whole.parameters, resumed.parameters)
    assert [r["round"] for r in resumed.rounds] == [1, 2, 3, 4, 5, 6]


def test_some_clients_a_round_are_chosen_by_seed() -> None:
    few = settings("lr", nodes_per_round=2)
    assert same(run(few).parameters, run(few).parameters)
    assert not same(run(few).parameters, run(settings("lr")).parameters)


@pytest.mark.parametrize("strategy", ["fedavg", "fedprox", "fedmedian", "trimmed_mean", "krum", "multikrum", "bulyan"])
def test_every_strategy_learns(strategy: str) -> None:
    chosen = settings("lr", strategy=strategy, nodes=8, rounds=5)
    assert run(chosen).rounds[-1]["auc_client_mean"] > 0.75


def test_scores_are_named_apart() -> None:
    last = run(settings("lr", **ANONYMOUS)).rounds[-1]
    assert {"accuracy", "accuracy_recoded", "auc_client_mean", "auc_client_mean_recoded", "log_loss"} <= set(last)


def test_simulation_reports_pooled_scores_and_measures() -> None:
    result = simulate(settings("lr", **ANONYMOUS)).to_dict()
    assert 0.7 < result["auc_pooled"] < 1
    assert result["k_reached"] >= 5
    assert 0 < result["ncp"] < 1
    assert result["n_train"] == 1200


class FailingGrid(LocalGrid):
    """Nodes that fail in some rounds."""

    failing: frozenset[int] = frozenset()

    def _deliver(self, message: Message) -> Message:
        if message.metadata.message_type == "train" and message.metadata.dst_node_id in self.failing:
            message.metadata.__dict__["_dst_node_id"] = 999  # unknown: delivery fails
        return super()._deliver(message)


def test_a_round_goes_on_without_failed_clients_or_stops_by_rule() -> None:
    chosen = settings("lr")
    grid = FailingGrid(client_app(), chosen)
    grid.failing = frozenset({2, 4})
    assert FederatedRun(grid, chosen).run().rounds[-1]["round"] == 4
    grid.failing = frozenset({1, 2, 4})
    with pytest.raises(InfeasibleError, match="Round 1: 2 of 5 updates are usable; at least 3 are needed"):
        FederatedRun(grid, chosen).run()


def test_a_node_with_another_schema_is_left_out_before_the_first_round() -> None:
    def load(context: object, chosen: RunSettings) -> object:
        table, number = load_node_table(context, chosen)  # type: ignore[arg-type]
        if number == 3:
            from dataclasses import replace

            age = table.schema["age"]
            assert isinstance(age, Numeric)
            table = replace(table, schema=table.schema.replacing(replace(age, high=99.0)))
        return table, number

    chosen = settings("lr")
    grid = LocalGrid(client_app(load), chosen)  # type: ignore[arg-type]
    outcome = FederatedRun(grid, chosen).run()
    assert sorted(outcome.facts) == [0, 1, 2, 4]
    assert outcome.rejected == [{"round": 0, "node": 3, "reason": "its schema is not that of the others"}]


def test_foreign_exceptions_do_not_travel() -> None:
    def load(context: object, chosen: RunSettings) -> object:
        raise ValueError("CANARY-93417")

    chosen = settings("lr")
    grid = LocalGrid(client_app(load), chosen)  # type: ignore[arg-type]
    content = wire.request_content(0, wire.pack_arrays([]))
    messages = [wire.request(1, "query", 0, content)]
    (reply,) = grid.send_and_receive(messages)
    assert reply.has_error()
    assert "CANARY" not in reply.error.reason
    assert "ValueError" in reply.error.reason
    with pytest.raises(InfeasibleError, match="None of 5 nodes"):
        FederatedRun(grid, chosen).run()


def test_anonymization_happens_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = Node.release.func  # type: ignore[attr-defined]
    monkeypatch.setattr(Node.release, "func", lambda node: calls.append(1) or original(node))
    run(settings("lr", rounds=4, **ANONYMOUS))
    assert len(calls) == 5


def test_too_few_people_in_a_client_is_one_clear_failure() -> None:
    chosen = settings("lr", method="mondrian", method_settings={"k": 5_000})
    with pytest.raises(FedanonError, match="None of 5 nodes"):
        run(chosen)


def test_client_app_is_a_flower_app() -> None:
    from clients.app import app

    assert isinstance(app, ClientApp)
