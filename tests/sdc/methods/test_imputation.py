"""Multiple imputation: copies are draws of the model, and pooled intervals hold what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from fedanon.errors import ConfigError
from fedanon.sdc.methods.linear_models import Imputation, pooled, synthetic_copy
from tests.sdc.methods.drawn import correlated, correlated_table, original, published


def test_rubins_rules_by_hand() -> None:
    """q = 1, 2, 3 and u = 4, 4, 4: within 4, between 1, T = 4 + 4/3, degrees 2 (1 + 4 / (4/3))^2 = 32."""
    found = pooled([1, 2, 3], [4, 4, 4])
    assert found == pytest.approx((2, 4 + 4 / 3, 32))
    assert pooled([1, 2, 3], [4, 4, 4], rule="reiter") == pytest.approx((2, 4 + 1 / 3, 2 * 13**2))
    assert pooled([5, 5], [1, 3]) == (5, 2, float("inf"))
    with pytest.raises(ConfigError, match=r"at least 2 estimates with a variance each\. Got 1 and 1\."):
        pooled([1], [1])


def test_a_copy_has_the_moments_of_the_model() -> None:
    data = correlated(20_000)
    x, s = data[:, :2], data[:, 2:]
    y = synthetic_copy(x, s, np.random.default_rng(0))
    np.testing.assert_allclose(
        np.corrcoef(np.column_stack([y, s]), rowvar=False), np.corrcoef(data, rowvar=False), atol=0.03
    )
    np.testing.assert_allclose(y.mean(axis=0), x.mean(axis=0), atol=0.05 * x.std(axis=0).max(), rtol=1e-3)
    np.testing.assert_allclose(y.std(axis=0), x.std(axis=0), rtol=0.03)


def test_parameters_are_drawn_too() -> None:
    """The mean of a copy varies twice: by its parameters and by its records, so by 2 var / n."""
    x = correlated(100)[:, :1]
    rng = np.random.default_rng(0)
    means = [synthetic_copy(x, x[:, :0], rng).mean() for _ in range(3_000)]
    # a t distribution with 99 degrees of freedom has the variance 99 / 97
    assert np.var(means) == pytest.approx(2 * x.var(ddof=1) / 100 * 99 / 97, rel=0.13)


def test_the_covariance_is_inverse_wishart() -> None:
    """Mean of the drawn covariance, seen through many copies: E'E / (n - r - p - 1) (1 + r / n) for r = 1."""
    x = correlated(30)[:, :2]
    rng = np.random.default_rng(0)
    found = np.mean([np.cov(synthetic_copy(x, x[:, :0], rng), rowvar=False) for _ in range(4_000)], axis=0)
    expected = np.cov(x, rowvar=False) * 29 / (29 - 2 - 1)
    np.testing.assert_allclose(found, expected, rtol=0.05)


def test_pooled_intervals_cover_the_truth() -> None:
    """A slope known to be 2, from copies of X alone: Reiter's 95 % intervals cover it about 95 times in 100."""
    rng = np.random.default_rng(0)
    covered, repeats = 0, 400
    for _ in range(repeats):
        s = rng.standard_normal((80, 1))
        x = 2 * s + rng.standard_normal((80, 1))
        slopes = [_slope(s[:, 0], synthetic_copy(x, s, rng)[:, 0]) for _ in range(5)]
        found = pooled(*np.transpose(slopes), rule="reiter")
        covered += abs(found.estimate - 2) <= t.ppf(0.975, found.degrees) * found.variance**0.5
    assert 0.92 <= covered / repeats <= 0.98


def _slope(s: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    centered = s - s.mean()
    slope = centered @ y / (centered @ centered)
    residuals = y - y.mean() - slope * centered
    return slope, residuals @ residuals / (len(s) - 2) / (centered @ centered)


def test_copies_differ_and_do_not_depend_on_their_number() -> None:
    table = correlated_table(60)
    first, second = (published(table, "imputation", columns="a,b", copy=i) for i in (1, 2))
    assert not np.isclose(first[:, 0], second[:, 0]).any()
    np.testing.assert_array_equal(published(table, "imputation", columns="a,b", copies=9, copy=2), second)
    np.testing.assert_array_equal(first[:, 2:], original(table)[:, 2:])
    with pytest.raises(ConfigError, match=r"'copy' parameter of Imputation must be an int >= 1 and <= 3.*Got 4"):
        Imputation(copies=3, copy=4)
