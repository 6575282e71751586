"""The search on bits suppresses the cells that a plain comparison of all rows does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.sdc.methods._wildcard_search import all_bits, index_rows, restore, silent_bits, suppress_in_turn


def differences(rows: np.ndarray, row: int) -> np.ndarray:
    """In which keys every row differs from one."""
    return np.asarray((rows >= 0) & (rows[row] >= 0) & (rows != rows[row]))


def counts_of(rows: np.ndarray) -> np.ndarray:
    """How many rows each row agrees with; one that says nothing does not count for a complete one."""
    complete, silent = (rows >= 0).all(axis=1), (rows < 0).all(axis=1) & (rows.shape[1] > 1)
    agree = np.array([~differences(rows, row).any(axis=1) for row in range(len(rows))])
    return np.asarray((agree & ~(complete[:, None] & silent)).sum(axis=1))


def plain_turns(rows: np.ndarray, problems: list[int], k: int, *, waits: bool) -> np.ndarray:
    rows = rows.copy()
    for row in problems:
        if waits and counts_of(rows)[row] >= k:
            continue
        different = differences(rows, row)
        sizes = different.sum(axis=1)
        keys = different[sizes == sizes[sizes > 0].min()].any(axis=0) if sizes.any() else rows[row] >= 0
        if keys.any():
            rows[row, np.flatnonzero(keys)[-1]] = -1
    return rows


def plain_restore(rows: np.ndarray, before: np.ndarray, k: int) -> np.ndarray:
    rows = rows.copy()
    for c in range(rows.shape[1]):
        for row in range(len(rows)):
            if rows[row, c] < 0 <= before[row, c]:
                tried = rows.copy()
                tried[row, c] = before[row, c]
                if counts_of(tried).min() >= k:
                    rows = tried
    return rows


@st.composite
def rows_of_keys(draw: st.DrawFn) -> np.ndarray:
    """More rows than a word has bits, with frequent and rare values."""
    width = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = np.minimum(rng.geometric(0.4, size=(draw(st.integers(1, 90)), width)) - 1, draw(st.integers(1, 12)))
    rows[rng.random(rows.shape) < draw(st.sampled_from([0.0, 0.05, 0.4]))] = -1
    return rows.astype(np.int32)


@settings(max_examples=40, deadline=None)
@given(rows_of_keys(), st.integers(1, 5), st.booleans())
def test_same_cells_as_a_comparison_of_all_rows(before: np.ndarray, k: int, waits: bool) -> None:
    counts = counts_of(before)
    problems = np.flatnonzero(counts < k)
    rows, silent = before.copy(), silent_bits(before)
    suppress_in_turn(rows, problems, k, waits, index_rows(before), silent, all_bits(len(rows)))
    np.testing.assert_array_equal(rows, plain_turns(before, problems.tolist(), k, waits=waits))
    np.testing.assert_array_equal(silent, silent_bits(rows))


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_same_cells_restored(width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = np.minimum(rng.geometric(0.5, size=(70, width)) - 1, 3).astype(np.int32)
    # as if a search had suppressed too much: few rows keep what they said
    rows = np.where(rng.random(before.shape) < 0.8, -1, before).astype(np.int32)
    counts = counts_of(rows)
    k = int(min(counts.min(), 8))
    expected = plain_restore(rows, before, k)
    restore(rows, before, counts, k, index_rows(before), silent_bits(rows), all_bits(len(rows)))
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(counts, counts_of(rows))
