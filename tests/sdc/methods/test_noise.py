"""Additive noise: what is kept in expectation, measured on many records; outliers alone where asked."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.sdc.methods.noise import outliers
from tests.sdc.methods.drawn import Matrix, correlated, correlated_table, original, published, table_of

N, C = 40_000, 0.25
TABLE = correlated_table(N)
X = original(TABLE)
#: five standard errors of a mean, a variance and a correlation of N normal numbers; fourth moments of the skewed column
FEW_ERRORS = 5 / np.sqrt(N)


def means_move(y: Matrix) -> Matrix:
    return np.abs(y.mean(axis=0) - X.mean(axis=0)) / X.std(axis=0)


def correlations(x: Matrix) -> Matrix:
    return np.corrcoef(x, rowvar=False)


def test_independent_noise_keeps_means_and_inflates_variances() -> None:
    y = published(TABLE, "additive_noise", c=C)
    noise = y - X
    assert means_move(y).max() < FEW_ERRORS
    np.testing.assert_allclose(noise.var(axis=0) / X.var(axis=0), C, rtol=2 * FEW_ERRORS)
    np.testing.assert_allclose(y.var(axis=0) / X.var(axis=0), 1 + C, rtol=2 * FEW_ERRORS)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(correlations(noise)[off], 0, atol=FEW_ERRORS)
    np.testing.assert_allclose(correlations(y)[off], correlations(X)[off] / (1 + C), atol=2 * FEW_ERRORS)


def test_the_noise_of_sdcmicro_in_percent_is_a_share_of_the_standard_deviation() -> None:
    """sdcMicro's noise=5: the standard deviation of the noise is 0.05 of the column's."""
    y = published(TABLE, "additive_noise", c=0.05**2)
    np.testing.assert_allclose((y - X).std(axis=0) / X.std(axis=0), 0.05, rtol=FEW_ERRORS)


def test_correlated_noise_keeps_correlations() -> None:
    y = published(TABLE, "correlated_noise", c=C)
    assert means_move(y).max() < FEW_ERRORS
    np.testing.assert_allclose(correlations(y - X), correlations(X), atol=FEW_ERRORS)
    np.testing.assert_allclose(correlations(y), correlations(X), atol=FEW_ERRORS)
    np.testing.assert_allclose(y.var(axis=0) / X.var(axis=0), 1 + C, rtol=2 * FEW_ERRORS)


def test_kim_keeps_means_and_covariances() -> None:
    y = published(TABLE, "kim_noise", c=C)
    assert means_move(y).max() < FEW_ERRORS
    np.testing.assert_allclose(y.var(axis=0) / X.var(axis=0), 1, rtol=2 * FEW_ERRORS)
    np.testing.assert_allclose(correlations(y), correlations(X), atol=FEW_ERRORS)
    assert np.abs(y - X).std(axis=0).min() > 0


def test_correlated2_keeps_means_and_variances_but_not_correlations() -> None:
    d = 0.6
    y = published(TABLE, "correlated2_noise", d=d)
    assert means_move(y).max() < FEW_ERRORS
    np.testing.assert_allclose(y.var(axis=0) / X.var(axis=0), 1, rtol=2 * FEW_ERRORS)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(correlations(y)[off], (1 - d**2) * correlations(X)[off], atol=2 * FEW_ERRORS)


def test_only_outliers_are_moved() -> None:
    x = correlated(3_000, seed=1)[:, :2]
    x[:5] = [[50, 1.2e6], [10, 1e6], [90, 1e6], [50, 8e5], [0, 9e5]]
    table = table_of({"a": x[:, 0], "b": x[:, 1]})
    y = published(table, "outlier_noise", c=0.5)
    moved = (y != x).any(axis=1)
    high = (x > np.quantile(x, 0.99, axis=0)).any(axis=1)
    assert moved[:5].all()
    assert moved[high].all()
    np.testing.assert_array_equal(y[~moved], x[~moved])
    # 1 % above each of two quantiles, 2.5 % by distance; they overlap
    assert 0.025 < moved.mean() < 0.06


def test_outliers_by_distance_alone_are_found() -> None:
    """Inside the range of both columns, but against their correlation."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal(2_000)
    x = np.column_stack([first, first + 0.1 * rng.standard_normal(2_000)])
    x[0] = [1.5, -1.5]
    assert outliers(x, rng)[0]
    assert outliers(x, rng).mean() < 0.06


@pytest.mark.parametrize("method", ["additive_noise", "correlated_noise", "kim_noise", "outlier_noise"])
def test_no_noise_changes_nothing(method: str) -> None:
    small = table_of({"a": [1, 2, 5, 9], "b": [3, 3, 3, 3]})
    np.testing.assert_allclose(published(small, method, c=0.0), original(small), rtol=1e-14)


def test_restricted_noise_keeps_means_and_variances() -> None:
    table = correlated_table(20_000)
    x, y = original(table), published(table, "restricted_noise", c=0.5)
    np.testing.assert_allclose(y.mean(axis=0), x.mean(axis=0), atol=3 * (x.std(axis=0) / 100).max(), rtol=0.01)
    np.testing.assert_allclose(y.var(axis=0), x.var(axis=0), rtol=0.05)
    assert np.corrcoef(x[:, 0], y[:, 0])[0, 1] == pytest.approx(1 / np.sqrt(1.5), abs=0.02)


def test_sdcmicro_s_restricted_noise_draws_nothing() -> None:
    """Two columns, four rows: shrunk by sqrt((3 - 1) / (5 * 2)), and the two shifts of the means added in turn."""
    table = table_of({"a": [0.0, 1, 2, 3], "b": [10.0, 20, 30, 40]})
    y = published(table, "restricted_noise", c=1.0, as_sdcmicro=True)
    factor = np.sqrt(2 / 10)
    shifts = (1 - factor) * np.array([1.5, 25.0])
    expected = factor * original(table) + np.column_stack([np.tile(shifts, 2)] * 2)
    np.testing.assert_allclose(y, expected)
