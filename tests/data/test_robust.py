"""The minimum covariance determinant: outliers do not move it, and singular data do not stop it."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.data.robust import chi2_quantile, mcd, squared_mahalanobis, whitened


def test_outliers_stand_out_and_do_not_move_the_center() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, 3)) @ np.diag([1.0, 2.0, 0.5])
    points[:60] += 20
    scatter = mcd(points, rng)
    assert np.abs(scatter.center).max() < 0.5
    assert squared_mahalanobis(points, scatter)[:60].min() > squared_mahalanobis(points, scatter)[60:].max()


def test_the_metric_does_not_depend_on_the_units() -> None:
    points = np.random.default_rng(1).standard_normal((200, 2))
    mixed = points @ np.array([[3.0, 1.0], [0.0, 0.2]])
    plain, other = (squared_mahalanobis(x, mcd(x, np.random.default_rng(2))) for x in (points, mixed))
    np.testing.assert_allclose(plain, other, rtol=1e-2)


@pytest.mark.parametrize("shape", [(2, 3), (5, 1), (40, 4)])
def test_singular_and_tiny_tables_work(shape: tuple[int, int]) -> None:
    points = np.random.default_rng(3).standard_normal(shape)
    points[:, -1] = points[:, 0] if shape[1] > 1 else 1.0
    assert np.isfinite(whitened(points, np.random.default_rng(4))).all()


@pytest.mark.parametrize(("share", "degrees", "exact"), [(0.5, 13, 12.3398), (0.975, 13, 24.7356), (0.975, 2, 7.3778)])
def test_chi2_quantiles(share: float, degrees: int, exact: float) -> None:
    assert chi2_quantile(share, degrees) == pytest.approx(exact, rel=0.01)
