"""Rank swapping: the same values, none moved too far, and each with a partner."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.sdc.methods._rank_swap import swap_partners
from tests.sdc.methods.drawn import correlated_table, original, published, table_of


@settings(max_examples=100, derandomize=True)
@given(n=st.integers(1, 200), window=st.integers(1, 250), seed=st.integers(0, 2**32))
def test_partners_are_pairs_within_the_window(n: int, window: int, seed: int) -> None:
    partner = swap_partners(n, window, np.array([seed], dtype=np.uint64))
    np.testing.assert_array_equal(partner[partner], np.arange(n))
    assert np.abs(partner - np.arange(n)).max() <= window
    # two ranks left alone are too far apart to have been swapped with each other
    assert np.all(np.diff(np.flatnonzero(partner == np.arange(n))) > window)


@pytest.mark.parametrize("percent", [1.0, 10.0, 100.0])
def test_marginals_are_exact_and_no_rank_moves_too_far(percent: float) -> None:
    table = correlated_table(2_000)
    x, y = original(table), published(table, "rank_swapping", percent=percent)
    np.testing.assert_array_equal(np.sort(y, axis=0), np.sort(x, axis=0))
    moves = np.argsort(np.argsort(y, axis=0), axis=0) - np.argsort(np.argsort(x, axis=0), axis=0)
    assert np.abs(moves).max() <= 2_000 * percent / 100
    assert np.abs(moves).max() > 0.9 * 2_000 * percent / 100
    assert (moves == 0).mean() < 0.01


def test_a_wider_window_moves_more() -> None:
    table = correlated_table(500)
    x = original(table)
    near, far = (np.corrcoef(x[:, 0], published(table, "rank_swapping", percent=p)[:, 0])[0, 1] for p in (2.0, 60.0))
    assert near > 0.99
    assert far < 0.7


def test_partners_are_uniform() -> None:
    """The lowest rank has four free ranks to choose from: each is its partner a quarter of the time."""
    draws = [swap_partners(5, 4, np.array([seed], dtype=np.uint64))[0] for seed in range(4_000)]
    counts = np.bincount(draws, minlength=5)
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:], 1_000, atol=5 * np.sqrt(750))


def test_a_window_of_no_rank_is_refused() -> None:
    with pytest.raises(InfeasibleError, match=r"10 % of 9 rows is less than one rank: nothing could be swapped\."):
        published(correlated_table(9), "rank_swapping")


def test_ends_are_coded_by_their_means() -> None:
    """Of 200 values the ten highest and the four lowest become their mean; the others are swapped among themselves."""
    x = np.arange(200.0)
    table = table_of({"a": x})
    y = published(table, "rank_swapping", percent=10, top=5, bottom=2)[:, 0]
    assert (y[-10:] == x[-10:].mean()).all()
    assert (y[:4] == x[:4].mean()).all()
    assert sorted(y[4:-10]) == x[4:-10].tolist()


@pytest.mark.parametrize("r0", [0.8, 0.95])
def test_a_correlation_is_kept(r0: float) -> None:
    """Moore's formula takes values for evenly spread; of such ones the correlation is at least what is asked for."""
    x = np.arange(3000.0)
    y = published(table_of({"a": x}), "rank_swapping", r0=r0)[:, 0]
    assert r0 <= np.corrcoef(x, y)[0, 1] < 1


def test_a_larger_change_of_means_moves_values_farther() -> None:
    table = table_of({"a": np.arange(1.0, 2001)})
    moved = [np.abs(published(table, "rank_swapping", k0=k0)[:, 0] - table.frame["a"]).mean() for k0 in (0.01, 0.1)]
    assert moved[0] < moved[1]
    with pytest.raises(ConfigError, match="one of percent, r0 and k0"):
        published(table, "rank_swapping", r0=0.9, percent=5)
    with pytest.raises(InfeasibleError, match="less than one rank"):
        published(table, "rank_swapping", r0=1.0)
