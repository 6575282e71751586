"""Scores from noisy histograms: what they are, how far off, and how far off those of anonymized test rows are."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest

from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.federated.policy import NodePolicy
from fedanon.federated.server import FederatedRun
from fedanon.federated.shared_scores import enough
from fedanon.joint.node import make_node
from fedanon.joint.noise import add_noise_shares
from fedanon.learning.node import Node
from fedanon.learning.node_rules import NodeRules, ScoreRule
from fedanon.learning.private_scores import (
    EDGES,
    FINE_EDGES,
    N_BINS,
    add_noise,
    coarsened,
    count_predictions,
    pooled_scores,
    read_histogram,
)
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters
from fedanon.models.scores import classification_scores
from fedanon.privacy.accounting.noise import SecureNoise
from fedanon.types import AnyArray, CountArray


def made_up(rows: int, seed: int = 0) -> tuple[AnyArray, AnyArray]:
    """Labels, and probabilities that are right about them."""
    rng = np.random.default_rng(seed)
    probability = 1 / (1 + np.exp(-rng.normal(-1, 2, rows)))
    return (rng.random(rows) < probability).astype(np.int8), probability


def test_everyone_is_in_one_bin() -> None:
    truth, probability = made_up(1000)
    counts = count_predictions(truth, probability)
    assert counts.shape == (2, N_BINS)
    assert counts.sum() == 1000
    assert counts[1].sum() == truth.sum()
    assert counts[:, EDGES.searchsorted(0.5, side="right") :].sum() == (probability >= 0.5).sum()
    assert count_predictions(np.array([0, 1]), np.array([np.nan, np.nan])).sum() == 2, "nor can a model hide anyone"


def test_pooled_scores_are_close_to_those_of_rows() -> None:
    parts = [made_up(3000, seed) for seed in range(4)]
    truth, probability = (np.concatenate(each) for each in zip(*parts, strict=True))
    exact = classification_scores(truth, (probability >= 0.5).astype(np.int8), probability)
    found = pooled_scores([count_predictions(*part) for part in parts], len(truth))
    for name in ("accuracy", "precision", "recall"):
        assert found[f"{name}_private"] == pytest.approx(exact[name], abs=1e-12)
    assert found["auc_private"] == pytest.approx(exact["auc"], abs=1e-3)
    assert found["log_loss_private"] == pytest.approx(exact["log_loss"], abs=0.01)
    assert found["brier_private"] == pytest.approx(exact["brier"], abs=2e-3)
    assert found["calibration_private"] < 0.02
    worse = pooled_scores([count_predictions(truth, np.sqrt(probability))], len(truth))
    assert worse["calibration_private"] > 0.1


def test_perfect_and_useless_models() -> None:
    truth = np.array([0, 1] * 50)
    assert pooled_scores([count_predictions(truth, truth * 0.98 + 0.01)], 100)["auc_private"] == pytest.approx(1.0)
    assert pooled_scores([count_predictions(truth, np.full(100, 0.3))], 100)["auc_private"] == pytest.approx(0.5)
    assert pooled_scores([], 0) == {}
    assert pooled_scores([count_predictions(np.zeros(9), np.full(9, 0.3))], 9) == {}, "one class has no scores"


def test_finer_bins_are_made_coarse_where_only_some_are_fine() -> None:
    truth, probability = made_up(5000)
    coarse, fine = (count_predictions(truth, probability, edges) for edges in (EDGES, FINE_EDGES))
    assert fine.shape == (2, 2 * N_BINS)
    np.testing.assert_array_equal(coarsened(fine), coarse)
    np.testing.assert_array_equal(coarsened(coarse), coarse)
    assert pooled_scores([coarse, fine], 10_000) == pooled_scores([coarse, coarse], 10_000)
    exact = classification_scores(truth, (probability >= 0.5).astype(np.int8), probability)
    found = pooled_scores([fine], 5000)
    assert found["accuracy_private"] == pytest.approx(exact["accuracy"], abs=1e-12)
    assert found["auc_private"] == pytest.approx(exact["auc"], abs=1e-3)


def test_noise_is_that_of_the_budget() -> None:
    counts = np.zeros((2, N_BINS), dtype=np.int64)
    drawn = np.concatenate([add_noise(counts, 2.0, SecureNoise()).ravel() for _ in range(300)])
    # each step away from 0 is exp(-2) times less likely; rounded continuous noise would be 0 in 63 % of draws
    zero, step = (drawn == 0).mean(), math.exp(-2)
    assert zero == pytest.approx((1 - step) / (1 + step), abs=4 * math.sqrt(0.25 / len(drawn)))
    assert abs(drawn.mean()) < 4 * drawn.std() / math.sqrt(len(drawn))


def test_one_answer_tells_no_more_about_a_person_than_its_epsilon() -> None:
    """Someone who knows all others sends a model that puts one person alone into a bin: is that person there?"""
    epsilon, tries, right = 2.0, 2000, 0
    rng = np.random.default_rng(0)
    for there in rng.random(tries // (2 * N_BINS)) < 0.5:
        drawn = add_noise(np.full((2, N_BINS), int(there)), epsilon, SecureNoise())
        right += int(((drawn > 0) == there).sum())
    share, most = right / (tries // (2 * N_BINS) * 2 * N_BINS), math.exp(epsilon) / (1 + math.exp(epsilon))
    error = math.sqrt(0.25 / tries)
    assert share < most + 4 * error, "the bound of differential privacy"
    assert share == pytest.approx(most, abs=5 * error), "which this attacker reaches"


def test_the_number_of_people_takes_noise_off_that_everyone_knows_of() -> None:
    truth, probability = made_up(500)
    counts = count_predictions(truth, probability)
    exact = pooled_scores([counts], 500)
    assert pooled_scores([counts + 3], 500) == pytest.approx(exact, abs=1e-9), "the same noise in every count"
    assert pooled_scores([counts + 3], 500 + 3 * counts.size) != pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize(
    "values", [None, 3, [1] * (2 * N_BINS - 1), [1.5] * (2 * N_BINS), [True] * (2 * N_BINS), [10**9] * (2 * N_BINS)]
)
def test_histograms_of_malicious_nodes_are_left_out(values: object) -> None:
    with pytest.raises(UpdateRejectedError, match="its histogram"):
        read_histogram(values)


def test_rules_say_how_many_are_tested() -> None:
    rules = NodeRules(min_test=50, max_test_share=0.5)
    assert [rules.n_test(people, 0.2) for people in (1000, 250, 100)] == [200, 50, 50]
    with pytest.raises(InfeasibleError, match=r"max_test_share = 0\.5 allows; lower min_test"):
        rules.n_test(99, 0.2)
    assert NodeRules().n_test(2, 0.01) == 1


# ---- on Adult ------------------------------------------------------------------------------------

NODES, REPEATS = 10, 400


def settings(model: str) -> RunSettings:
    rounds = 20 if model == "lr" else 30
    return RunSettings(
        method="mondrian", method_settings={"k": 5}, model=model, rounds=rounds, nodes=NODES, evaluate_every=rounds
    )


@lru_cache
def tables() -> list[Table]:
    """All of Adult, dealt out."""
    whole = load("adult")
    return [whole.select_rows(rows) for rows in np.array_split(np.random.default_rng(0).permutation(len(whole)), NODES)]


def nodes(model: str, scores: ScoreRule) -> list[Node]:
    rules = NodeRules(secret=b"0" * 32, scores=scores, test_k=NodePolicy().min_k)
    return [make_node(table, settings(model), number, rules) for number, table in enumerate(tables())]


@lru_cache
def trained(model: str) -> Parameters:
    """The model of ten nodes that test as they do by default."""
    chosen = settings(model)
    return FederatedRun(LocalGrid(client_app(prepared=nodes(model, "release")), chosen, NODES), chosen).run().parameters


def area(parts: list[tuple[AnyArray, AnyArray]]) -> float:
    truth, probability = (np.concatenate(each) for each in zip(*parts, strict=True))
    return classification_scores(truth, (probability >= 0.5).astype(np.int8), probability)["auc"]


def shared(counts: list[CountArray], epsilon: float) -> list[CountArray]:
    """Histograms with the shares of noise that the nodes add."""
    return [add_noise_shares(c.ravel(), 1 / epsilon, enough(len(counts))).reshape(c.shape) for c in counts]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_private_scores_of_adult_are_off_by_little(model: str) -> None:
    """The figures of docs/explanation/threat_model.md."""
    parameters, asked = trained(model), nodes(model, "private")
    raw = [(node.test_people[1], node.model.predict_proba(parameters, node.test_people[0])) for node in asked]
    people = sum(len(truth) for truth, _ in raw)
    coarse, fine = ([node.count_predictions(parameters, edges) for node in asked] for edges in (EDGES, FINE_EDGES))
    noise, errors = SecureNoise(), {}
    for epsilon in (1.0, NodePolicy().score_epsilon, 3.0, 4.0):
        for how in ("shared", "own"):
            found = [
                pooled_scores(
                    [add_noise(c, epsilon, noise) for c in coarse] if how == "own" else shared(fine, epsilon), people
                )["auc_private"]
                for _ in range(REPEATS)
            ]
            errors[how, epsilon] = off = np.abs(np.array(found) - area(raw))
            print(
                f"{model}: private AUC, {how} noise, epsilon {epsilon:g}: off by {off.mean():.4f} on average, "
                f"{np.median(off):.4f} in half and {np.quantile(off, 0.95):.4f} in 95 % of {REPEATS} evaluations; "
                f"{people} test people"
            )
    released = [
        (node.released_test[1], node.model.predict_proba(parameters, node.released_test[0]))
        for node in nodes(model, "release")
    ]
    print(f"{model}: AUC raw {area(raw):.4f}, released {area(released):.4f} ({area(released) - area(raw):+.4f})")
    assert np.quantile(errors["shared", NodePolicy().score_epsilon], 0.95) < 0.002
    assert errors["own", NodePolicy().score_epsilon].mean() < 0.002
    assert np.quantile(errors["own", 4.0], 0.95) < 0.002
    assert -0.1 < area(released) - area(raw) < 0, "anonymized test rows make a model look worse"
