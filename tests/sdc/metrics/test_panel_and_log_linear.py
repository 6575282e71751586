"""Temporal change of panels, and the log-linear risk of sample uniques."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedanon.data.cells import Numbers
from fedanon.metrics import evaluate
from fedanon.sdc.metrics.log_linear import expected_counts, unique_risks
from fedanon.sdc.metrics.panel import period_pairs, temporal_change
from tests.metrics.metric_cases import numeric, released, table_of

X = np.array([[1.0, 10], [2, 30], [3, 20], [4, 40]])
#: the moves in rank are 0, 1, -1, 0 in the original and 0, 0, 0, 0 here
Y = np.array([[1.0, 10], [2, 20], [3, 30], [4, 40]])


def test_temporal_change_by_hand() -> None:
    assert temporal_change(X, Y) == pytest.approx(0.5)
    assert temporal_change(X, Y, 2) == pytest.approx(math.sqrt(0.5))
    assert temporal_change(X, Y, 0) == temporal_change(X, Y, -1) == 0, "some moves are unchanged"
    assert temporal_change(X, X) == 0
    every = np.array([[4.0, 10], [3, 40], [2, 20], [1, 30]])  # moves -3, 1, 0, 2: apart by 3, 0, 1, 2
    assert temporal_change(X, every) == pytest.approx(1.5)


def test_periods_are_told_by_their_names() -> None:
    assert period_pairs(["income_2020", "age", "income_2019", "tax 1", "tax 2", "tax 3"]) == [(2, 0), (3, 4), (4, 5)]
    assert period_pairs(["age", "income"]) == []


def test_panels_have_metrics() -> None:
    table = table_of(y_1=(X[:, 0].tolist(), numeric("y_1", 0, 99)), y_2=(X[:, 1].tolist(), numeric("y_2", 0, 99)))
    release = released(table, [0, 1, 2, 3], {"y_1": Numbers(Y[:, 0]), "y_2": Numbers(Y[:, 1])})
    found = evaluate(table, release, ["temporal_change_0", "temporal_change_1", "temporal_change_2"])
    assert list(found.values()) == pytest.approx([0, 0.5, math.sqrt(0.5)])


def test_log_linear_risk_by_hand() -> None:
    """Independence: of (a, x), (a, x), (b, y) the last is unique, with an expected count of 3 (1/3) (1/3)."""
    keys = np.array([[0, 0], [0, 0], [1, 1]], dtype=np.int32)
    np.testing.assert_allclose(expected_counts(keys), [4 / 3, 4 / 3, 1 / 3])
    v = (1 - 1 / 5) / 3
    uniques, matches = unique_risks(keys, np.array([5.0, 5.0, 5.0]))
    assert uniques == pytest.approx(math.exp(-v) / 2)
    assert matches == pytest.approx((1 - math.exp(-v)) / v / 2)
    assert unique_risks(keys, None) == (0.5, 0.5), "the whole population: every unique is one"
