from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.cells import Numbers
from fedanon.data.schema import Categorical
from fedanon.data.table import Table
from fedanon.metrics import evaluate
from fedanon.metrics.linkage import dld
from fedanon.release.release import Release
from fedanon.sdc.metrics.moments import coefficient_difference, coefficients, gini, mean_variation
from fedanon.sdc.metrics.numeric_pair import correlation, covariance
from fedanon.sdc.metrics.numeric_risk import dld_two, linked_among_two, records_in_interval, values_in_interval
from tests.metrics.metric_cases import QUASI, WARDS, numeric, released, releases, table_of

NUMERIC = [
    *(f"{name}{part}" for name in ("mse", "mae", "mean_variation") for part in ("", "_covariance", "_correlation")),
    *("il1", "eigenvalues_covariance", "eigenvalues_correlation", "regression_difference", "gini_difference"),
]


def two_columns(y: list[list[float]]) -> tuple[Table, Release]:
    """Four records (x1, x2) = (0, 1), (2, 1), (4, 3), (6, 7), and their published values."""
    table = table_of(a=([0, 2, 4, 6], numeric("a", 0, 9)), b=([1, 1, 3, 7], numeric("b", 0, 9)))
    return table, released(table, [0, 1, 2, 3], {"a": Numbers(np.array(y[0])), "b": Numbers(np.array(y[1]))})


def test_deviations_by_hand() -> None:
    case = two_columns([[0, 2, 4, 6], [2, 2, 6, 14]])  # the second column doubled
    found = evaluate(*case, NUMERIC)
    assert found["mse"] == pytest.approx((1 + 1 + 9 + 49) / 8)
    assert found["mae"] == pytest.approx(12 / 8)
    assert found["mean_variation"] == pytest.approx(4 / 7)  # 0 and 0 is skipped
    assert found["il1"] == pytest.approx(400 / 7)
    # covariances 20/3, 20/3, 8 become 20/3, 40/3, 32; correlations stay
    assert found["mae_covariance"] == pytest.approx((0 + 20 / 3 + 24) / 3)
    assert found["mse_covariance"] == pytest.approx((0 + (20 / 3) ** 2 + 24**2) / 3)
    assert found["mean_variation_covariance"] == pytest.approx((0 + 1 + 3) / 3)
    assert found["mae_correlation"] == pytest.approx(0, abs=1e-12)
    assert found["eigenvalues_correlation"] == pytest.approx(0, abs=1e-12)
    # a on b: slope halved, intercept kept; b on a: both doubled
    assert found["regression_difference"] == pytest.approx((0.5 + 2) / 2)
    assert found["gini_difference"] == pytest.approx(0, abs=1e-12)


def test_zeros_in_the_original_take_the_release() -> None:
    assert mean_variation(np.array([0.0, 0.0, 4.0]), np.array([0.0, 5.0, 3.0])) == pytest.approx((1 + 0.25) / 2)
    assert math.isnan(mean_variation(np.zeros(3), np.zeros(3)))


def test_eigenvalues_of_covariances_by_hand() -> None:
    case = two_columns([[0, 4, 8, 12], [2, 2, 6, 14]])  # all doubled: eigenvalues fourfold
    assert evaluate(*case, ["eigenvalues_covariance"])["eigenvalues_covariance"] == pytest.approx(6)


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.1, 9)), min_size=2, max_size=12))
def test_gini_is_half_the_relative_mean_difference(records: list[tuple[int, float]]) -> None:
    x, w = np.array(records, dtype=float).T
    if not x.any():
        assert math.isnan(gini(x, w))
        return
    gaps = (np.abs(x[:, None] - x) * np.outer(w, w)).sum()
    assert gini(x, w) == pytest.approx(100 * gaps / (2 * w.sum() * (w * x).sum()), abs=1e-9)


def test_gini_of_negative_values_is_unknown() -> None:
    assert math.isnan(gini(np.array([-1.0, 2.0])))
    assert gini(np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(75)


def test_regression_is_least_squares() -> None:
    points = np.random.default_rng(0).normal(size=(30, 4)) @ np.diag([1, 100, 0.01, 1]) + [0, 5, 0, 1]
    design = np.column_stack([np.ones(30), points[:, [0, 1, 3]]])
    assert coefficients(points, 2) == pytest.approx(np.linalg.lstsq(design, points[:, 2], rcond=None)[0])
    dependent = np.column_stack([points, points[:, 0] + points[:, 1]])
    assert coefficient_difference(dependent, dependent, 2) == 0


def test_moments_are_numpys() -> None:
    points = np.random.default_rng(0).normal(size=(20, 3)) * [1, 1e3, 1e-3] + [0, 1e4, 1]
    assert covariance(points) == pytest.approx(np.cov(points.T), rel=1e-9)
    assert correlation(points) == pytest.approx(np.corrcoef(points.T), rel=1e-9)
    constant = np.column_stack([points[:, 0], np.full(20, 0.1)])
    assert correlation(constant).tolist() == [[1, 0], [0, 1]]
    assert covariance(constant)[1].tolist() == [0, 0]


@given(releases())
def test_an_identity_loses_nothing(case: tuple[Table, Release]) -> None:
    table = case[0]
    same = released(table, table.distinct.labels.tolist())
    for name, value in evaluate(table, same, NUMERIC).items():
        assert math.isnan(value) or value == pytest.approx(0, abs=1e-9), name


def test_nothing_numeric() -> None:
    table = table_of(ward=(["onco", "ortho"], Categorical("ward", QUASI, WARDS)))
    names = [*NUMERIC, "interval_risk", "interval_risk_records", "dld_two", "outlier_risk"]
    assert all(math.isnan(v) for v in evaluate(table, released(table, [0, 1]), names).values())


def test_intervals_by_hand() -> None:
    x, y = np.array([[0.0, 0.0], [10, 10], [20, 20]]), np.array([[0.0, 4.0], [10, 10], [40, 20]])
    # deviations: originals 10 and 10; published 20.8 and 8.1
    assert values_in_interval(x, y, 0.4).tolist() == [[True, True], [True, True], [False, True]]
    assert values_in_interval(x, y, 0.39).sum() == 4
    assert records_in_interval(x, y, 0.4).tolist() == [False, True, False]
    assert records_in_interval(x, y, 0.97).tolist() == [True, True, True]


def chance_of_two(original: np.ndarray, published: np.ndarray, i: int) -> float:
    """Ties in all orders: the share of places of the own original that are the first or the second."""
    distance = np.square(original - published[i]).sum(axis=1)
    nearer, tied = int((distance < distance[i]).sum()), int((distance == distance[i]).sum())
    return sum(nearer + place < 2 for place in range(tied)) / tied


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=20))
def test_linked_among_two_is_that_of_the_definition(records: list[tuple[int, int, int, int]]) -> None:
    points = np.array(records, dtype=float)
    original, published = points[:, :2], points[:, 2:]
    expected = [chance_of_two(original, published, i) for i in range(len(points))]
    assert linked_among_two(original, published) == pytest.approx(expected)


@given(releases())
def test_two_link_at_least_as_many_as_one(case: tuple[Table, Release]) -> None:
    table, release = case
    if table.missing == "error" and not release.suppressed.any() and not math.isnan(dld(table, release)):
        assert dld_two(table, release) >= dld(table, release) - 1e-9
