"""Differentially private training: clipping, noise, budget, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from flwr.app import Context, RecordDict
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from fedanon.errors import ConfigError, DataError, UpdateRejectedError
from fedanon.federated.client import train_once
from fedanon.federated.simulation import simulate
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.dp_training import (
    PrivateAverage,
    TrainingBudget,
    clipped,
    node_multiplier,
    sampled,
    train_privately,
    with_own_budget,
)
from fedanon.learning.node import Node
from fedanon.learning.settings import RunSettings
from fedanon.models.base import LocalState, TrainingData
from fedanon.models.logistic_regression import LogisticRegression, clipped_sum
from fedanon.privacy.accounting.accountant import GaussianRounds, epsilon_of
from tests.federated.conftest import first_rows, settings

#: tests of secure noise fail by chance once in a million runs
CHANCE = 1e-6


def private(
    mode: str, epsilon: float = 2.0, *, randomness: str = "seeded", clip: float = 2.0, **more: Any
) -> RunSettings:
    dp = {"mode": mode, "epsilon": epsilon, "clip": clip, "randomness": randomness}
    return settings(dp_settings=dp, **more)


def server(run: RunSettings, n_clients: int = 5) -> PrivateAverage:
    budget = TrainingBudget.for_run(run, n_clients, None)
    assert budget is not None
    assert budget.spend(1)
    return PrivateAverage(LogisticRegression(), 7, budget)


# ---- clipping -----------------------------------------------------------------------------------


@given(step=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), clip=st.floats(1e-3, 1e3))
def test_a_clipped_step_is_no_longer_than_the_clip(step: list[float], clip: float) -> None:
    cut = clipped(np.array(step), clip)
    assert np.linalg.norm(cut) <= clip * (1 + 1e-12)
    if np.linalg.norm(step) <= clip:
        np.testing.assert_allclose(cut, step)


def gradients(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=4), rng.normal(size=(rows, 4)) * 3, rng.integers(0, 2, rows).astype(np.int8)


def summed(point: np.ndarray, design: np.ndarray, target: np.ndarray, clip: float) -> np.ndarray:
    return clipped_sum(point, design, np.linalg.norm(design, axis=1), target, clip)


def test_the_sum_of_clipped_gradients_is_that_of_the_formula() -> None:
    point, design, target = gradients(40, 0)
    total = np.zeros(4)
    for x, y in zip(design, target, strict=True):
        gradient = (1 / (1 + np.exp(-x @ point)) - y) * x
        total += gradient / max(1.0, float(np.linalg.norm(gradient)) / 0.7)
    np.testing.assert_allclose(summed(point, design, target, 0.7), total, rtol=1e-12)


@hypothesis_settings(max_examples=50)
@given(seed=st.integers(0, 2**32), row=st.integers(0, 19), clip=st.floats(0.01, 100))
def test_one_record_moves_the_sum_by_no_more_than_the_clip(seed: int, row: int, clip: float) -> None:
    point, design, target = gradients(20, seed)
    others = np.arange(20) != row
    change = summed(point, design, target, clip) - summed(point, design[others], target[others], clip)
    assert np.linalg.norm(change) <= clip * (1 + 1e-9)


def test_one_client_moves_the_average_by_no_more_than_its_share() -> None:
    run = private("central", clip=0.5)
    rng = np.random.default_rng(0)
    updates = [[rng.normal(size=7) * 10.0**i, rng.normal(size=1)] for i in range(-2, 3)]
    merged = []
    for present in (updates, updates[:-1]):
        model = server(run)
        model.combine(1, present, [1] * len(present))
        merged.append(np.concatenate(model.parameters))
    assert np.linalg.norm(merged[0] - merged[1]) == pytest.approx(0.5 / 5)  # the noise is the same, being seeded


# ---- noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize("randomness", ["secure", "seeded"])
def test_the_noise_of_the_server(randomness: str) -> None:
    model = server(private("central", randomness=randomness, rounds=20))
    deviation = model._budget.noise_multiplier * 2.0 / 5
    noise: list[float] = []
    before = np.zeros(8)
    for number in range(1, 151):
        model.combine(number, [], [])
        after = np.concatenate(model.parameters)
        noise += (after - before).tolist()
        before = after
    assert stats.kstest(noise, stats.norm(scale=deviation).cdf).pvalue > CHANCE
    assert stats.kstest(noise, stats.norm(scale=1.6 * deviation).cdf).pvalue < CHANCE


class Rows:
    """Rows that do not change."""

    n_instances = 1
    target = np.zeros(30, dtype=np.int8)

    def instance(self, round_number: int) -> int:
        return 0

    def features(self, round_number: int) -> np.ndarray:
        return np.zeros((30, 7), dtype=np.float32)


class Still(LogisticRegression):
    """A model that has learnt all it can."""

    def train(self, parameters: Any, data: TrainingData, **more: Any) -> Any:
        from fedanon.models.base import Update

        return Update(parameters, 30)


def updates(run: RunSettings, model: LogisticRegression, count: int) -> np.ndarray:
    """What nodes send who have nothing to say, less the global parameters."""
    start = [np.full(7, 0.25), np.zeros(1)]
    sent = [
        train_privately(
            model, run, start, Rows(), round_number=i, rng=np.random.default_rng(i), state=LocalState()
        ).parameters
        for i in range(count)
    ]
    return np.array([np.concatenate(arrays) for arrays in sent]) - np.concatenate(start)


@pytest.mark.parametrize("randomness", ["secure", "seeded"])
def test_the_noise_of_a_node_on_its_update(randomness: str) -> None:
    run = private("local", randomness=randomness)
    noise = updates(run, Still(), 300).ravel()
    deviation = node_multiplier(run) * 2 * 2.0  # two updates within the clip are up to twice the clip apart
    assert stats.kstest(noise, stats.norm(scale=deviation).cdf).pvalue > CHANCE
    assert stats.kstest(noise, stats.norm(scale=1.6 * deviation).cdf).pvalue < CHANCE


@pytest.mark.parametrize("randomness", ["secure", "seeded"])
def test_the_noise_of_a_node_on_its_gradients(randomness: str) -> None:
    run = private("record", randomness=randomness, model_settings={"steps": 1, "l2": 1e-9})
    noise = updates(run, LogisticRegression(steps=1, l2=1e-9), 300)[:, :7].ravel()  # no row has a feature
    deviation = 4.0 * node_multiplier(run) * 2.0 / 30  # learning rate, clip, rows
    assert stats.kstest(noise, stats.norm(scale=deviation).cdf).pvalue > CHANCE
    assert stats.kstest(noise, stats.norm(scale=1.6 * deviation).cdf).pvalue < CHANCE


def test_samples_of_clients_are_drawn_independently() -> None:
    budget = TrainingBudget.for_run(private("central", nodes_per_round=2, randomness="secure"), 5, None)
    assert budget is not None
    sizes = np.bincount([len(sampled(budget, [10, 11, 12, 13, 14], i)) for i in range(2_000)], minlength=6)
    expected = stats.binom(5, 0.4).pmf(np.arange(6)) * 2_000
    assert stats.chisquare(sizes, expected).pvalue > CHANCE


# ---- budget -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "queries"), [("central", 1), ("local", 1), ("record", 3)])
def test_a_run_spends_its_budget_and_says_so(mode: str, queries: int) -> None:
    result = simulate(private(mode)).to_dict()
    spent = result["dp"]
    rounds = GaussianRounds(noise_multiplier=spent["noise_multiplier"], count=4 * queries)
    assert spent["epsilon_spent"] == pytest.approx(epsilon_of([rounds], 1e-5))
    assert spent["epsilon_spent"] == pytest.approx(2.0, rel=1e-6)
    assert (spent["delta"], spent["mode"], spent["rounds_spent"]) == (1e-5, mode, 4)
    assert not spent["promised"]  # its noise was seeded
    curve = [entry["epsilon_spent"] for entry in result["rounds"]]
    assert curve == sorted(curve)
    assert curve[-1] == spent["epsilon_spent"]
    assert "ncp" not in result  # measures without noise stay on the nodes


def test_a_run_with_secure_noise_differs_every_time() -> None:
    runs = [simulate(private("record", randomness="secure", rounds=2)).outcome for _ in range(2)]
    assert (runs[0].parameters[0] != runs[1].parameters[0]).all()
    assert runs[0].dp is not None
    assert runs[0].dp["promised"]


def test_training_on_gradients_still_learns() -> None:
    result = simulate(private("record", epsilon=8.0, rounds=20)).to_dict()
    assert result["auc_pooled"] > 0.75


def test_sampling_clients_needs_less_noise() -> None:
    some = TrainingBudget.for_run(private("central", nodes_per_round=1, rounds=50), 10, None)
    all_ = TrainingBudget.for_run(private("central", rounds=50), 10, None)
    assert some is not None
    assert all_ is not None
    assert some.spend(1)
    assert all_.spend(1)
    assert some.rate == 0.1
    assert some.noise_multiplier < all_.noise_multiplier / 2
    result = simulate(private("central", nodes_per_round=2)).to_dict()
    assert result["dp"]["epsilon_spent"] <= 2.0


@pytest.mark.parametrize("mode", ["central", "record"])
def test_a_resumed_run_does_not_forget_what_was_spent(mode: str, tmp_path: Path) -> None:
    run = private(mode)
    whole = simulate(run).outcome

    def stop(scores: dict[str, Any]) -> None:
        if scores["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(run, checkpoints=tmp_path, on_round=stop)
    resumed = simulate(run, checkpoints=tmp_path).outcome
    # round 2 was asked, but not kept: it is asked again, and costs again
    assert resumed.dp is not None
    assert whole.dp is not None
    assert resumed.dp["epsilon_spent"] <= 2.0 * (1 + 1e-6)
    if mode == "central":
        assert resumed.dp["rounds_spent"] == 5
        assert resumed.dp["noise_multiplier"] > whole.dp["noise_multiplier"]  # less is left for the last rounds
    else:
        assert resumed.dp["rounds_spent"] == 4
        assert resumed.rounds[-1]["round"] == 3  # a node's noise is planned: there is no budget for a fifth time


def test_more_rounds_than_planned_are_not_trained(tmp_path: Path) -> None:
    first = simulate(private("central"), checkpoints=tmp_path).outcome
    more = simulate(private("central", rounds=8), checkpoints=tmp_path).outcome
    np.testing.assert_array_equal(first.parameters[0], more.parameters[0])
    assert more.rounds[-1]["round"] == 4


def test_a_discarded_checkpoint_gives_nothing_back(tmp_path: Path) -> None:
    run = private("record")
    simulate(run, checkpoints=tmp_path)
    Checkpoints(tmp_path).discard(run)
    again = simulate(run, checkpoints=tmp_path).outcome
    assert (again.parameters[0] == 0).all()  # no round was left to train in
    next(tmp_path.glob("*.spent.json")).write_text("{")
    with pytest.raises(DataError, match="privacy budget is damaged"):
        simulate(run, checkpoints=tmp_path)


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "more", "message"),
    [
        ("central", {"model": "xgb"}, "'xgb' is not one"),
        ("record", {"model": "xgb"}, "'xgb' is not one"),
        ("record", {"model": "mlp"}, "'mlp' has none: use lr"),
        ("central", {"strategy": "krum"}, "needs the strategy 'fedavg'"),
        ("central", {"exclude_suspects": True}, "cannot exclude suspects"),
        ("record", {"method": "mondrian", "method_settings": {"k": 5}}, "needs the method 'identity'"),
        ("local", {"protocol": "as_published"}, "needs the protocol 'corrected'"),
        ("global", {}, "The 'mode' parameter of DpSettings must be one of 'central', 'local', 'record'"),
        ("local", {"epsilon": 0.0}, "The 'epsilon' parameter of DpSettings"),
    ],
)
def test_what_could_not_be_kept_is_refused(mode: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        private(mode, **more)


def test_a_node_answers_a_round_once() -> None:
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})
    train_once(context, 1, 4)
    train_once(context, 3, 4)
    for number in (1, 3, 5):
        with pytest.raises(UpdateRejectedError, match="already; or the run has no such round"):
            train_once(context, number, 4)


# ---- budgets by risk ----------------------------------------------------------------------------


def test_a_node_with_more_risk_has_a_smaller_budget_and_never_more_than_the_run() -> None:
    run = private("local", 3.0)
    budgets = [with_own_budget(run, risk).dp_settings["epsilon"] for risk in (0.0, 0.2, 0.9, 1.0)]
    assert budgets == pytest.approx([3.0, 2.4, 0.3, 1e-3])
    assert node_multiplier(with_own_budget(run, 0.2)) > node_multiplier(run)


def test_by_risk_the_release_of_a_node_decides_its_noise() -> None:
    run = settings(
        dp_settings={"mode": "local", "epsilon": 3.0, "by_risk": True, "randomness": "seeded"},
        method="mondrian",
        method_settings={"k": 5},
    )
    node = Node(first_rows(), run, 0)
    sizes = pd.Series(node.release.groups.labels).value_counts()
    risk = len(sizes) / int(sizes.sum())
    assert node._private_settings.dp_settings["epsilon"] == pytest.approx(3.0 * (1 - risk))
    with pytest.raises(ConfigError, match="needs the dp mode 'local'"):
        settings(dp_settings={"mode": "central", "epsilon": 3.0, "by_risk": True})
