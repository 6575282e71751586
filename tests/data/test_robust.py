"""The minimum covariance determinant: outliers do not move it, and singular data do not stop it."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.data.robust import (
    chi2_quantile,
    consistency_factor,
    finite_sample_factor,
    mcd,
    squared_mahalanobis,
    whitened,
)


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
    assert chi2_quantile(share, degrees) == pytest.approx(exact, rel=1e-4)


def test_factors_as_covmcd_prints_them() -> None:
    """tests/MCD-specials.Rout.save of robustbase 0.99: raw.cnp2 and cnp2 of 52 and of 12 records of one column."""
    assert consistency_factor(1, 27 / 52) == pytest.approx(6.45, abs=0.005)
    assert finite_sample_factor(1, 52, reweighted=False) == pytest.approx(1.14, abs=0.005)
    assert finite_sample_factor(1, 12, reweighted=False) == pytest.approx(1.41, abs=0.005)
    assert consistency_factor(1, 0.975) == pytest.approx(1.17, abs=0.005)
    assert finite_sample_factor(1, 52, reweighted=True) == pytest.approx(1.01, abs=0.005)


@pytest.mark.parametrize("p", [2, 4, 8])
def test_normal_data_have_their_own_covariance_and_the_right_share_of_outliers(p: int) -> None:
    """Without the factors the variances were 30 to 40 % too small, and 3.3 to 3.7 % of the records outliers."""
    points = np.random.default_rng(6).standard_normal((8000, p))
    scatter = mcd(points, np.random.default_rng(0))
    assert np.diag(scatter.covariance).mean() == pytest.approx(1, abs=0.02)
    beyond = squared_mahalanobis(points, scatter) > chi2_quantile(0.975, p)
    assert beyond.mean() == pytest.approx(0.025, abs=0.003)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("reweighted", [False, True])
def test_few_records_have_a_covariance_all_the_same(p: int, reweighted: bool) -> None:
    factors = [finite_sample_factor(p, n, reweighted=reweighted) for n in range(1, 200)]
    assert min(factors) >= 1
    for n in range(2, 3 * p + 4):
        points = np.random.default_rng(n).normal(size=(n, p))
        assert np.isfinite(squared_mahalanobis(points, mcd(points, np.random.default_rng(0)))).all()
