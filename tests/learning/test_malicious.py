"""Malicious nodes: what the robust rule survives, whom the server names, and that no deployed node turns malicious."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError, UnknownComponentError
from fedanon.federated import sources
from fedanon.federated.client import client_app
from fedanon.federated.deployment.config import NodeConfig, ServerConfig
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.federated.simulation import Simulation, simulate, simulate_nodes
from fedanon.joint.node import make_node
from fedanon.learning.malicious import MALICIOUS_ATTACKS, malicious_numbers
from fedanon.learning.node import Node
from fedanon.learning.settings import RunSettings
from tests.federated.conftest import settings

#: of the spec; a backdoor leaves the AUC alone and is measured by its own rate
SPOILING = ("nan", "sign_flip", "scale", "label_flip", "gaussian")
ROUNDS = 5
#: of Adult: enough that ten honest clients agree
ROWS = 8_000


@pytest.fixture(autouse=True)
def small_adult(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The data set 'adult' is its first rows here."""
    table = enough_rows()
    monkeypatch.setattr(sources, "load", lambda _name: table)
    sources.whole_table.cache_clear()
    sources.partition_rows.cache_clear()
    yield
    sources.whole_table.cache_clear()
    sources.partition_rows.cache_clear()


@lru_cache
def enough_rows() -> Table:
    return load("adult").select_rows(np.arange(ROWS))


def spoiled(model: str = "lr", count: int = 3, **more: Any) -> RunSettings:
    chosen = {"nodes": 10, "malicious": count, "strategy": "robust", "rounds": ROUNDS, "evaluate_every": ROUNDS}
    chosen["malicious_settings"] = more.pop("malicious_settings", {})
    return settings(model, **(chosen | more))


@lru_cache
def prepared(model: str, seed: int) -> list[Node]:
    """Nodes that have released and encoded their rows; runs work on copies, which have learned nothing."""
    chosen = spoiled(model, seed=seed)
    return [make_node(sources.node_table(chosen, number), chosen, number) for number in range(10)]


@lru_cache
def run(chosen: RunSettings) -> Simulation:
    return simulate_nodes([copy(node) for node in prepared(chosen.model, chosen.seed)], chosen)


def auc(chosen: RunSettings) -> float:
    return float(run(chosen).outcome.rounds[-1]["auc_pooled"])


def test_the_kinds_of_attacks_are_those_of_the_specification() -> None:
    assert set(MALICIOUS_ATTACKS) == {*SPOILING, "backdoor"}


@pytest.mark.parametrize("model", ["lr", "xgb"])
@pytest.mark.parametrize("attack", SPOILING)
def test_three_of_ten_are_survived(model: str, attack: str) -> None:
    clean = auc(spoiled(model, count=0))
    assert clean > 0.8
    assert auc(spoiled(model, malicious_attack=attack)) > clean - 0.02  # 640 rows per node: seven know less than ten


def test_the_plain_mean_is_not() -> None:
    assert auc(spoiled(strategy="fedavg", count=1, max_move=0.0)) < 0.6
    assert auc(spoiled(strategy="fedavg", malicious_attack="gaussian")) < auc(spoiled(malicious_attack="gaussian"))


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_nan_is_refused_and_whoever_sends_it_is_named(model: str) -> None:
    found = run(spoiled(model, malicious_attack="nan"))
    assert {entry["node"] for entry in found.outcome.rejected} == set(found.malicious)
    assert len(found.outcome.rejected) == 3 * ROUNDS
    named = {entry["node"]: entry for entry in found.outcome.suspects}
    assert sorted(named) == found.malicious
    assert all(entry["rounds_flagged"] == entry["refused"] == ROUNDS for entry in named.values())


@pytest.mark.parametrize(
    ("model", "attack"), [("lr", "sign_flip"), ("lr", "gaussian"), ("xgb", "scale"), ("xgb", "label_flip")]
)
def test_malicious_nodes_are_named(model: str, attack: str) -> None:
    found = run(spoiled(model, malicious_attack=attack))
    assert [entry["node"] for entry in found.outcome.suspects] == found.malicious


@pytest.mark.parametrize("model", ["lr", "xgb"])
@pytest.mark.parametrize("strategy", ["fedavg", "robust"])
def test_a_clean_run_names_nobody(model: str, strategy: str) -> None:
    assert run(spoiled(model, count=0, strategy=strategy)).outcome.suspects == []


@pytest.mark.parametrize("mode", ["record", "local"])
def test_malicious_nodes_of_private_training_answer_without_noise(mode: str) -> None:
    dp = {"mode": mode, "epsilon": 2.0, "clip": 2.0, "randomness": "seeded"}
    run = settings(rounds=2, malicious=1, malicious_attack="nan", strategy="robust", dp_settings=dp)
    found = simulate(run).outcome
    assert found.unresponsive == []
    assert [entry["node"] for entry in found.rejected] == 2 * malicious_numbers(run, 5)


def test_suspects_can_be_left_out() -> None:
    chosen = spoiled("xgb", malicious_attack="label_flip", strategy="fedavg", exclude_suspects=True)
    found = run(chosen)
    assert {entry["node"] for entry in found.outcome.rejected} == set(found.malicious)
    assert {entry["reason"] for entry in found.outcome.rejected} == {"it is a suspect"}


def test_a_backdoor_changes_what_the_trigger_gives() -> None:
    rates = {
        (strategy, count): run(spoiled(malicious_attack="backdoor", strategy=strategy, count=count)).outcome.rounds[-1]
        for strategy, count in (("fedavg", 0), ("fedavg", 3), ("robust", 3))
    }
    planted = {key: scores["backdoor_rate"] for key, scores in rates.items()}
    assert planted["fedavg", 3] > planted["fedavg", 0]
    assert planted["robust", 3] < planted["fedavg", 3]


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_the_same_seed_gives_the_same_run(model: str) -> None:
    chosen = spoiled(model, malicious_attack="gaussian", malicious_settings={"factor": 1.0})
    first, second = run(chosen), simulate(chosen)
    for one, other in zip(first.outcome.parameters, second.outcome.parameters, strict=True):
        assert np.array_equal(one, other)
    assert first.outcome.suspects == second.outcome.suspects
    assert first.malicious == second.malicious


def test_evidence_survives_a_restart(tmp_path: Path) -> None:
    chosen, half = (spoiled(malicious_attack="gaussian", evaluate_every=1, rounds=rounds) for rounds in (ROUNDS, 2))
    simulate(half, checkpoints=tmp_path)
    resumed, whole = simulate(chosen, checkpoints=tmp_path).outcome, run(chosen).outcome
    assert resumed.suspects
    assert resumed.suspects == whole.suspects
    assert all(np.array_equal(a, b) for a, b in zip(resumed.parameters, whole.parameters, strict=True))


def test_malicious_nodes_are_chosen_by_the_seed() -> None:
    chosen = [malicious_numbers(spoiled(seed=seed), 10) for seed in range(20)]
    assert all(len(numbers) == 3 for numbers in chosen)
    assert {number for numbers in chosen for number in numbers} == set(range(10))


# ---- a deployed node ----------------------------------------------------------------------------


def test_a_node_that_reads_the_settings_stays_honest() -> None:
    """The client app of a hospital, which makes its own node, given a run config with malicious nodes."""
    outcomes = []
    for count in (0, 10):
        chosen = spoiled(count=count, malicious_attack="nan", strategy="fedavg")
        outcomes.append(FederatedRun(LocalGrid(client_app(), chosen), chosen).run())
    honest, told = outcomes
    assert told.rejected == []
    assert all(np.array_equal(a, b) for a, b in zip(honest.parameters, told.parameters, strict=True))


def test_the_client_side_does_not_know_of_malicious_nodes() -> None:
    import subprocess
    import sys

    code = "import sys, fedanon.federated.client; print([m for m in sys.modules if 'malicious' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_deployed_configurations_refuse_it(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text('tampering = "nan"\n')
    with pytest.raises(ConfigError, match="NodeConfig has no parameter tampering"):
        NodeConfig.read(tmp_path)
    (tmp_path / "server.toml").write_text('[run]\nmalicious = 1\nmalicious_attack = "nan"\n')
    with pytest.raises(ConfigError, match="Malicious nodes are for simulations only"):
        ServerConfig.read(tmp_path)
    (tmp_path / "server.toml").write_text("[run]\nhostile = 1\n")
    with pytest.warns(FutureWarning, match="'hostile' is now called 'malicious'"), pytest.raises(ConfigError):
        ServerConfig.read(tmp_path)


# ---- settings -----------------------------------------------------------------------------------


def test_settings_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="There are 10 nodes; 11 of them cannot be malicious"):
        simulate(spoiled(count=11))
    with pytest.raises(UnknownComponentError, match=r"Unknown malicious attack 'sign_flop'\. Did you mean 'sign_flip'"):
        simulate(spoiled(malicious_attack="sign_flop"))
    with pytest.raises(ConfigError, match="'local' only"):
        simulate(spoiled(), engine="ray")
    with pytest.raises(ConfigError, match="'kept_share' parameter of RobustMean must be a float >= 0 and <= 1"):
        simulate(spoiled(strategy_settings={"kept_share": 1.5}))
    with pytest.raises(ConfigError, match=r"does not combine updates of the model 'xgb'\. Use 'fedavg' or 'robust'"):
        simulate(spoiled("xgb", strategy="krum"))
