"""Resampling: ranks are kept, and each rank moves towards the mean of its bootstrap samples."""

from __future__ import annotations

import numpy as np

from fedanon.sdc.methods.rank_methods import mean_of_sorted_samples
from tests.sdc.methods.drawn import correlated_table, original, published


def test_ranks_are_kept_and_values_are_not() -> None:
    table = correlated_table(300)
    x, y = original(table), published(table, "resampling", samples=3)
    order = np.argsort(x, axis=0)
    assert np.all(np.diff(np.take_along_axis(y, order, axis=0), axis=0) >= 0)
    assert (x != y).mean() > 0.9
    assert np.all((y >= x.min(axis=0)) & (y <= x.max(axis=0)))


def test_many_samples_give_the_expected_order_statistics() -> None:
    """Against the exact expectation: P(i-th smallest of n draws <= j-th value) is a binomial tail."""
    from scipy.stats import binom

    x = np.array([0.0, 1.0, 3.0, 10.0])
    tails = np.array([[binom.sf(i, 4, j / 4) for j in range(1, 5)] for i in range(4)])
    expected = np.diff(tails, axis=1, prepend=0) @ x
    found = mean_of_sorted_samples(x, 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(found, expected, atol=5 * 5 / np.sqrt(40_000))


def test_one_sample_is_a_plain_bootstrap() -> None:
    x = np.arange(50.0)
    drawn = np.sort(np.random.default_rng(3).integers(50, size=50)).astype(float)
    np.testing.assert_array_equal(mean_of_sorted_samples(x, 1, np.random.default_rng(3)), drawn)
