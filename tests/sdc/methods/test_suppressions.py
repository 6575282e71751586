"""Which cells are suppressed, and the three counts of similar records."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.sdc.methods.suppression import equal_suppressions, fitting_suppressions, wildcard_suppressions
from fedanon.sdc.wildcards import SUPPRESSED, consistent_people, sdcmicro_people, wildcard_people


@st.composite
def combinations_of_keys(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Distinct combinations of up to four keys, some cells already '*', with people; and a k they can reach."""
    width = draw(st.integers(1, 4))
    cell = st.integers(SUPPRESSED, 2)
    rows = draw(st.lists(st.tuples(*[cell] * width), min_size=1, max_size=12, unique=True))
    people = draw(st.lists(st.integers(1, 4), min_size=len(rows), max_size=len(rows)))
    k = draw(st.integers(1, sum(people)))
    return np.array(rows, dtype=np.int32), np.array(people, dtype=np.float64), k


def agree(p: np.ndarray, q: np.ndarray) -> bool:
    return all(a == b or SUPPRESSED in (a, b) for a, b in zip(p, q, strict=True))


@given(combinations_of_keys())
def test_wildcard_counts_against_all_pairs(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    codes, people, _ = case
    expected = [sum(n for q, n in zip(codes, people, strict=True) if agree(p, q)) for p in codes]
    np.testing.assert_allclose(wildcard_people(codes, people), expected)


@given(combinations_of_keys())
def test_fitting_suppressions_are_the_least(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    """Every combination alone: no smaller set of further cells covers the values of k people."""
    codes, people, k = case
    suppressed = fitting_suppressions(codes, people, k)
    assert np.all(suppressed[codes == SUPPRESSED])
    for row, own in zip(codes, suppressed, strict=True):
        already = row == SUPPRESSED
        free = np.flatnonzero(~already)
        sizes = [
            size
            for size in range(len(free) + 1)
            for more in combinations(free, size)
            if people[[covers(row, already, more, other) for other in codes]].sum() >= k
        ]
        assert own.sum() - already.sum() == min(sizes)


def covers(row: np.ndarray, already: np.ndarray, more: tuple[int, ...], other: np.ndarray) -> bool:
    kept = ~already
    kept[list(more)] = False
    return bool((row == other)[kept].all())


@given(combinations_of_keys())
def test_after_fitting_suppressions_every_row_agrees_with_k(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    """What sdcMicro counts: '*' on either side agrees with anything."""
    codes, people, k = case
    released = np.where(fitting_suppressions(codes, people, k), SUPPRESSED, codes)
    assert wildcard_people(released, people).min() >= k


@given(combinations_of_keys())
def test_after_equal_suppressions_k_people_share_every_row(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    codes, people, k = case
    suppressed = equal_suppressions(codes, people, k)
    assert np.all(suppressed[codes == SUPPRESSED])
    released = [tuple(row) for row in np.where(suppressed, SUPPRESSED, codes)]
    for row in set(released):
        assert sum(n for other, n in zip(released, people, strict=True) if other == row) >= k
    assert consistent_people(codes, people, suppressed).min() >= k, "k-anonymity holds against true values too"


def test_importance_decides_between_equals_and_columns_on_the_left_are_spared() -> None:
    """Both keys could go for the last row: (0,1) would join either neighbor's column."""
    codes = np.array([[0, 0], [1, 1], [0, 1]], dtype=np.int32)
    suppressed = fitting_suppressions(codes, np.array([5.0, 5.0, 1.0]), 3)
    assert suppressed.tolist() == [[False, False], [False, False], [False, True]]


def test_fractions_of_people_reach_a_whole() -> None:
    """Three rows of a third each are one person, whatever their sum rounds to."""
    codes = np.zeros((1, 1), dtype=np.int32)
    assert not fitting_suppressions(codes, np.array([sum([0.1] * 30)]), 3).any()


def test_the_wildcard_count_alone_is_no_goal() -> None:
    """Two rows of nothing but '*' raise the count of all unique rows to 3: 4 cells, and nobody else is protected."""
    unique = list(product(range(3), range(3)))
    codes = np.array([*unique[:-2], (SUPPRESSED, SUPPRESSED)], dtype=np.int32)
    assert wildcard_people(codes, np.array([1.0] * 7 + [2.0])).min() == 3
    asked = np.array(unique, dtype=np.int32)
    assert fitting_suppressions(asked, np.ones(9), 3).sum() == 9, "what we ask for takes one cell of every row"


@pytest.mark.parametrize(("k", "cells"), [(2, 2), (3, 10)])
def test_equal_suppressions_by_hand(k: int, cells: int) -> None:
    """Rows (0,0) x3, (1,0) x1, (1,1) x1.

    For k=2 the last two share (1,*). For k=3 they are left over by every set of columns and are suppressed wholly, 4
    cells, with the class that costs least: (0,0), whose three people give 6 more.
    """
    codes = np.array([[0, 0], [1, 0], [1, 1]], dtype=np.int32)
    people = np.array([3.0, 1.0, 1.0])
    suppressed = equal_suppressions(codes, people, k)
    assert (suppressed.sum(axis=1) * people).sum() == cells


#: tests/testthat/test_freqCalc.R of sdcMicro 5.8.1, which prints these numbers; -1 is NA
WEIGHTS = np.array([18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0])
A, B = [2, 3, 2, 2, 3, 3, 1, 2], [3, 3, 3, 3, 3, 3, 4, 3]
C = [1, 3, -1, 2, 1, 1, -1, 1]


@pytest.mark.parametrize(
    ("columns", "sample", "population"),
    [
        ((A, B, [1, 3, 1, 2, 1, 1, 1, 1]), [3, 1, 3, 1, 2, 2, 1, 3], [108, 45.5, 108, 17, 100, 100, 123.5, 108]),
        ((A, B, C), [3, 1, 4, 2, 2, 2, 1, 3], [108, 45.5, 125, 56, 100, 100, 123.5, 108]),
        (
            ([2, 3, -1, 2, 3, 3, 1, 2], [3, 3, -1, 3, 3, 3, 4, 3], [-1] * 8),
            [4, 4, 8, 4, 4, 4, 2, 4],
            [125, 184.5, 394, 125, 184.5, 184.5, 162.5, 125],
        ),
    ],
)
def test_sdcmicro_s_own_numbers(columns: tuple[list[int], ...], sample: list[int], population: list[float]) -> None:
    codes = np.column_stack(columns).astype(np.int32)
    np.testing.assert_allclose(sdcmicro_people(codes, np.ones(8)), sample)
    np.testing.assert_allclose(sdcmicro_people(codes, WEIGHTS), population)


def test_rows_that_say_nothing_are_not_compared_with_complete_ones_in_sdcmicro() -> None:
    """Though the other way round they are; with one key they are in both."""
    codes = np.array([[0, 0], [1, 1], [1, SUPPRESSED], [SUPPRESSED, SUPPRESSED]], dtype=np.int32)
    assert wildcard_people(codes, np.ones(4)).tolist() == [2, 3, 3, 4]
    assert sdcmicro_people(codes, np.ones(4)).tolist() == [1, 2, 3, 4]
    assert sdcmicro_people(codes[:, 1:], np.ones(4)).tolist() == [3, 3, 4, 4]


@given(combinations_of_keys())
def test_wildcard_suppressions_reach_sdcmicro_s_count(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    rows, people, k = case
    codes = np.repeat(rows, people.astype(int), axis=0).astype(np.int32)
    found = wildcard_suppressions(codes, min(k, len(codes)))
    assert (found | (codes != SUPPRESSED)).all(), "what was '*' stays"
    assert sdcmicro_people(np.where(found, SUPPRESSED, codes), np.ones(len(codes))).min() >= min(k, len(codes))


def test_a_complete_row_among_rows_that_say_nothing_loses_a_key() -> None:
    """They agree with it, but sdcMicro does not count them; it stops with an error here."""
    codes = np.array([[0, 0], [SUPPRESSED, SUPPRESSED], [SUPPRESSED, SUPPRESSED]], dtype=np.int32)
    assert wildcard_suppressions(codes, 2)[0].tolist() == [False, True]
