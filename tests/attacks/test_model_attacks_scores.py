"""Attacks on models where the answer is known: scores, likelihood ratios, gradients and trees written by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from fedanon.attacks import membership
from fedanon.attacks.gradient_inversion import Decoder, gradient, update
from fedanon.attacks.membership import Shadows, catch_members
from fedanon.attacks.tree_leakage import distinct_thresholds, judge_thresholds, leaf_counts
from fedanon.data.schema import Numeric, Role
from fedanon.models.encoding import Encoding
from fedanon.models.scores import log_loss
from fedanon.models.trees import Tree
from tests.attacks.contexts import table_of

SCORES = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=40)
UNIT = st.floats(0, 1, width=32)


# ---- membership ---------------------------------------------------------------------------------


@given(SCORES, st.floats(0, 1))
def test_scores_that_tell_nothing_catch_as_many_members_as_others(scores: list[float], false_alarms: float) -> None:
    both = np.array([*scores, *scores])
    inside = np.arange(len(both)) < len(scores)
    assert catch_members(both, inside, false_alarms).mean() == pytest.approx(false_alarms)


def test_half_of_a_tie_is_caught() -> None:
    scores = np.array([3.0, 2.0, 1.0, 2.0, 2.0, 1.0, 1.0])
    inside = np.array([True, True, True, False, False, False, False])
    # of four others one may be taken for a member: one of the two who tie at 2
    np.testing.assert_allclose(catch_members(scores, inside, 0.25), [1.0, 0.5, 0.0])


@given(st.lists(st.tuples(st.integers(-4, 4).map(float), st.booleans()), min_size=1, max_size=30))
def test_no_threshold_tells_more_right_than_the_best(people: list[tuple[float, bool]]) -> None:
    scores, inside = np.array([p[0] for p in people]), np.array([p[1] for p in people])

    def right(threshold: float) -> int:
        return int(((scores >= threshold) == inside).sum())

    most = max(right(threshold) for threshold in [*scores, np.inf])
    assert right(membership.best_threshold(scores, inside)) == most


def test_a_model_that_remembers_its_members_gives_them_away() -> None:
    rng = np.random.default_rng(0)
    inside = np.arange(2000) < 1000
    found = membership.judge_losses(rng.normal(size=2000) + 20 * inside, inside)
    assert found.rate == 1.0
    assert found.details == {"auc": 1.0, "caught_at_1_percent_false_alarms": 1.0}


def test_a_model_that_knows_no_one_gives_no_one_away() -> None:
    found = membership.judge_losses(np.random.default_rng(0).normal(size=4000), np.arange(4000) < 2000)
    assert found.interval[0] < 0.5 < found.interval[1]
    assert found.details["auc"] == pytest.approx(0.5, abs=0.02)


def _shadows(memory: float, models: int = 9, people: int = 2000) -> Shadows:
    rng = np.random.default_rng(1)
    inside = np.argsort(rng.random((models, people)), axis=0) < models // 2
    # people are easy or hard; a plain threshold would see nothing else
    easy = rng.normal(scale=5, size=people)
    everyone = np.arange(people)
    return Shadows(easy + rng.normal(size=(models, people)) + memory * inside, inside, everyone, everyone)


@pytest.mark.parametrize(
    ("memory", "auc", "rate"), [(0.0, (0.48, 0.52), (0.005, 0.015)), (10.0, (0.999, 1), (0.99, 1))]
)
def test_the_likelihood_ratio_finds_what_was_remembered_and_nothing_else(
    memory: float, auc: tuple[float, float], rate: tuple[float, float]
) -> None:
    shadows = _shadows(memory)
    scores = np.array([membership.likelihood_ratio(shadows, i) for i in range(len(shadows.inside))])
    found = membership.judge_ratios(scores, shadows.inside)
    assert auc[0] <= found.details["auc"] <= auc[1]
    assert rate[0] <= found.rate <= rate[1]
    assert found.n == 4 * 2000


def test_the_likelihood_ratio_is_that_of_two_normal_densities() -> None:
    shadows = _shadows(1.0, models=8, people=5)
    said, inside, value = shadows.certainty[1:], shadows.inside[1:], shadows.certainty[0]
    expected = np.zeros(5)
    for chosen, sign in ((inside, 1), (~inside, -1)):
        groups = [said[chosen[:, person], person] for person in range(5)]
        pooled = sum(((g - g.mean()) ** 2).sum() for g in groups) / sum(len(g) - 1 for g in groups)
        expected += sign * norm.logpdf(value, [g.mean() for g in groups], np.sqrt(pooled))
    np.testing.assert_allclose(membership.likelihood_ratio(shadows, 0), expected)


# ---- gradients ----------------------------------------------------------------------------------


@given(arrays(np.float32, 6, elements=UNIT), st.integers(0, 1))
def test_the_gradient_of_one_row_is_the_row(row: np.ndarray, label: int) -> None:
    slope, intercept = gradient(row[None], np.array([label], dtype=np.int8))
    np.testing.assert_allclose(slope / intercept, row, rtol=1e-6)


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.random((7, 3)).astype(np.float32), rng.integers(0, 2, 7).astype(np.int8)

    def loss(point: np.ndarray) -> float:
        return log_loss(labels, 1 / (1 + np.exp(-(rows @ point[:3] + point[3]))))

    step = 1e-5 * np.eye(4)
    slope, intercept = gradient(rows, labels)
    np.testing.assert_allclose([*slope, intercept], [(loss(e) - loss(-e)) / 2e-5 for e in step], atol=1e-8)


@given(arrays(np.float32, 5, elements=st.floats(0.125, 1, width=32)), st.integers(0, 1))
def test_an_update_on_one_row_points_along_the_row(row: np.ndarray, label: int) -> None:
    coefficients, _ = update(row[None], np.array([label], dtype=np.int8))
    # the model rounds to float32, 6e-8, and its Newton step divides by the penalty, 1e-4
    np.testing.assert_allclose(coefficients / coefficients[0], row / row[0], rtol=1e-3)


def test_the_decoder_reads_raw_rows_back() -> None:
    table = table_of("adult", 300)
    encoding = Encoding.from_schema(table.schema)
    decoder = Decoder(encoding, encoding.encode_table(table))
    values = decoder.values(decoder.raw)
    assert decoder.right(values, values).all()
    np.testing.assert_array_equal(np.rint(values[:, 0] * 73 + 17), table.frame["age"].astype(float))
    np.testing.assert_array_equal(values[:, 1], table.codes[:, 1])
    assert decoder.places[-1].stop == encoding.width
    assert all(a.stop == b.start for a, b in pairwise(decoder.places))


# ---- trees --------------------------------------------------------------------------------------


def _stump(feature: int, threshold: float) -> Tree:
    return Tree(
        left=np.array([1, -1, -1], dtype=np.int32),
        right=np.array([2, -1, -1], dtype=np.int32),
        feature=np.array([feature, 0, 0], dtype=np.int32),
        value=np.array([threshold, -0.1, 0.1], dtype=np.float32),
        default_left=np.zeros(3, dtype=np.int32),
    )


def test_thresholds_are_counted_once_and_compared_as_float32() -> None:
    trees = [_stump(0, 0.1), _stump(0, 0.1), _stump(0, 0.15), _stump(1, 0.1)]
    assert len(distinct_thresholds(trees)) == 3
    raw = np.array([[0.1, 0], [0.2, 1], [0.9, 0]], dtype=np.float32)
    ten = Numeric("ten", Role.QUASI_IDENTIFYING, low=0, high=10, integer=True)
    found = judge_thresholds(trees, raw, {0: ten}, {})
    assert (found.rate, found.n) == (0.5, 2)
    # three of the eleven values are held; .15 rounded up is .2
    assert found.baseline == pytest.approx(3 / 11)
    assert found.details["rounded_up"] == 1.0
    assert found.details["of_all_features"] == pytest.approx(1 / 3)


def test_leaves_count_the_labels_that_reach_them() -> None:
    raw = np.array([[0.1], [0.2], [0.3], [0.9]], dtype=np.float32)
    counts = leaf_counts(_stump(0, 0.3), raw, np.array([0, 1, 1, 1], dtype=np.int8))
    np.testing.assert_array_equal(counts, [[1, 1], [0, 2]])
