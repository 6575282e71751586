"""Transition matrices: what stays in expectation, what is drawn, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.errors import ConfigError
from fedanon.sdc.methods.pram import (
    draw,
    even_transition,
    invariant_transition,
    refuse_invalid_transition,
)


def test_even_transition_by_hand() -> None:
    expected = [[0.8, 0.1, 0.1], [0.25, 0.5, 0.25], [0, 0, 1]]
    np.testing.assert_allclose(even_transition(np.array([0.8, 0.5, 1.0])), expected, atol=1e-15)


def test_invariant_transition_by_hand() -> None:
    """pi = (3/4, 1/4), diagonal (2/3, 1/2): lambda = pi P = (5/8, 3/8); Q = ((4/5, 1/5), (2/3, 1/3)); R = PQ."""
    whole = invariant_transition(np.array([0.75, 0.25]), np.array([2 / 3, 0.5]), 1.0)
    np.testing.assert_allclose(whole, [[34 / 45, 11 / 45], [11 / 15, 4 / 15]], atol=1e-15)
    half = invariant_transition(np.array([0.75, 0.25]), np.array([2 / 3, 0.5]), 0.5)
    np.testing.assert_allclose(half, (whole + np.eye(2)) / 2, atol=1e-15)


@given(
    counts=st.lists(st.integers(1, 10_000), min_size=1, max_size=40),
    least=st.floats(0, 1),
    alpha=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_expected_counts_stay(counts: list[int], least: float, alpha: float, seed: int) -> None:
    shares = np.array(counts) / sum(counts)
    diagonal = np.random.default_rng(seed).uniform(least, 1, len(counts))
    matrix = invariant_transition(shares, diagonal, alpha)
    assert np.abs(shares @ matrix - shares).max() < 1e-12
    refuse_invalid_transition(matrix.clip(0, 1))  # a certain step may come out as 1 + 2e-16


def test_draws_follow_the_matrix() -> None:
    matrix = np.array([[0.9, 0.1, 0.0], [0.3, 0.2, 0.5], [0.0, 0.0, 1.0]])
    states = np.repeat(np.arange(3, dtype=np.int32), 40_000)
    drawn = draw(states, matrix, np.random.default_rng(1))
    seen = np.stack([np.bincount(drawn[states == i], minlength=3) / 40_000 for i in range(3)])
    # four standard deviations of a share of 40,000 draws
    assert np.all(np.abs(seen - matrix) <= 4 * np.sqrt(matrix * (1 - matrix) / 40_000))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.9, 0.2], [0.0, 1.0]], "1 rows that do not sum to one"),
        ([[1.5, -0.5], [0.0, 1.0]], "2 entries that are not probabilities"),
        ([[np.nan, 1.0], [0.0, 1.0]], "1 entries that are not probabilities"),
        ([[1.0, 0.0]], "as many rows as columns"),
    ],
)
def test_a_matrix_that_is_no_transition_is_refused(matrix: list[list[float]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        refuse_invalid_transition(np.array(matrix))
