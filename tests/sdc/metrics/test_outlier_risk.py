from __future__ import annotations

import numpy as np
import pytest

from fedanon.data.robust import mcd, squared_mahalanobis
from fedanon.sdc.metrics.numeric_pair import standardized
from fedanon.sdc.metrics.numeric_risk import outlier_risk, sdcmicro_reach, squared_reach


def cloud(n: int = 200) -> np.ndarray:
    """A normal cloud with three records far away from it."""
    points = np.random.default_rng(1).normal(size=(n, 2))
    points[:3] = [[30, 30], [-30, 30], [30, -30]]
    return standardized(points)


def test_reach_grows_with_outlyingness() -> None:
    points = cloud()
    for reach in (squared_reach(points), sdcmicro_reach(points)):
        assert reach[:3].min() > 5 * reach[3:].max()
    distance = squared_mahalanobis(points, mcd(points, np.random.default_rng(0)))
    assert squared_reach(points) == pytest.approx(0.01 * distance)
    # the mean is not the robust center, but here it is close to it
    assert sdcmicro_reach(points)[:3] == pytest.approx(0.0005 * np.sqrt(distance[:3]), rel=0.05)


def test_risk_by_hand() -> None:
    x = np.array([[0.0], [1], [2], [3], [10]])
    y = 5 * x + 7  # standardized, the same values: the mean is 3.2, the deviation 3.96
    y[1] += 5
    gap = np.abs(standardized(x) - standardized(y))[:, 0]
    assert gap[1] > 0.15 > 0.1 > np.delete(gap, 1).max()
    found = outlier_risk(x, y, np.array([0.0, 0.1, 0.1, 0.1, 0.1]))
    assert found.near.tolist() == [False, False, True, True, True]
    # published 12, 17 (from 12), 17, 22, 57: the third has a double, the fourth is 0.26 deviations from it
    assert found.alone.tolist() == [False, False, False, True, True]
    hidden = outlier_risk(x, y, np.array([0.0, 0.1, 0.1, 0.1, 0.1]), hiding=0.5)
    assert hidden.alone.tolist() == [False, False, False, False, True]


def test_a_double_hides_a_record() -> None:
    x = np.array([[0.0, 0], [0, 0], [5, 5], [9, 1]])
    found = outlier_risk(x, x, np.full(4, 0.1))
    assert found.near.all()
    assert found.alone.tolist() == [False, False, True, True]


def test_one_close_column_is_enough() -> None:
    x = np.array([[0.0, 0], [1, 2], [2, 1], [3, 3]])
    y = np.column_stack([x[:, 0], x[::-1, 1]])
    assert outlier_risk(x, y, np.full(4, 0.01)).near.all()


def test_dependent_and_constant_columns() -> None:
    points = cloud()
    dependent = np.column_stack([points, points.sum(axis=1), np.ones(len(points))])
    reach = sdcmicro_reach(standardized(dependent))
    assert np.isfinite(reach).all()
    assert reach[:3].min() > reach[3:].max()
