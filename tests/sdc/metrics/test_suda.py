"""The search for minimal sample uniques against the definition, and the scores."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.data.cells import Intervals
from fedanon.errors import ConfigError
from fedanon.sdc.metrics.suda import SampleUniques, dis_suda, minimal_sample_uniques, released_keys, unique_scores
from tests.metrics.metric_cases import numeric, released, table_of, wards

Unique = tuple[int, frozenset[int]]


def by_definition(keys: np.ndarray, max_size: int) -> set[Unique]:
    """Every set of keys, smallest first: unique for a row, and no smaller set found for the row inside it."""
    found: list[list[frozenset[int]]] = [[] for _ in keys]
    for size in range(1, max_size + 1):
        for chosen in combinations(range(keys.shape[1]), size):
            values = [tuple(row) for row in keys[:, list(chosen)].tolist()]
            counts = Counter(values)
            for mine, value in zip(found, values, strict=True):
                if counts[value] == 1 and min(value) >= 0 and not any(smaller < set(chosen) for smaller in mine):
                    mine.append(frozenset(chosen))
    return {(row, unique) for row, mine in enumerate(found) for unique in mine}


@st.composite
def keys_and_size(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    n_keys = draw(st.integers(1, 5))
    column = st.integers(-1, draw(st.integers(0, 4)))
    rows = draw(st.lists(st.tuples(*[column] * n_keys), min_size=1, max_size=25))
    return np.array(rows), draw(st.integers(1, n_keys))


def listed(found: SampleUniques) -> list[Unique]:
    pairs = zip(found.rows.tolist(), found.members, strict=True)
    return [(row, frozenset(np.flatnonzero(members).tolist())) for row, members in pairs]


@settings(max_examples=300)
@given(keys_and_size())
def test_uniques_are_those_of_the_definition(case: tuple[np.ndarray, int]) -> None:
    keys, max_size = case
    found = listed(minimal_sample_uniques(keys, max_size))
    assert len(set(found)) == len(found)
    assert set(found) == by_definition(keys, max_size)


def test_many_uniques() -> None:
    """More uniques than there is room for at first."""
    keys = np.random.default_rng(0).integers(0, 4, size=(150, 8))
    found = listed(minimal_sample_uniques(keys))
    assert len(found) > 1024
    assert set(found) == by_definition(keys, 8)


def test_more_keys_than_have_a_bit_for_every_set() -> None:
    """With 28 keys the uniques found are listed instead: the same result, by another way."""
    keys = np.random.default_rng(0).integers(0, 3, size=(10, 28))
    found = listed(minimal_sample_uniques(keys, 3))
    assert len(set(found)) == len(found)
    assert set(found) == by_definition(keys, 3)
    assert max(len(unique) for _, unique in found) == 3


def test_scores_by_hand() -> None:
    # the first row alone has a 9; of the others some are equal, and some unique by two keys
    keys = np.array([[9, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 2], [0, 1, 1], [1, 1, 2], [1, 1, 2], [0, 0, 0]])
    found = minimal_sample_uniques(keys)
    sizes = Counter((int(r), int(m.sum())) for r, m in zip(found.rows, found.members, strict=True))
    assert sizes == Counter({(0, 1): 1, (3, 2): 1, (4, 2): 1, (7, 2): 1})
    assert found.scores().tolist() == [2, 0, 0, 1, 1, 0, 0, 1]
    assert found.scores("normalized")[0] == pytest.approx(2 / 3)
    assert found.scores("ihsn")[[0, 3]] == pytest.approx([(4 - 1) / 3, (2 - 1) / 3])
    expected = [1 / (1 + 4 * 99 / (2**1.25 * (2**-1.25 + 3))), 1 / (1 + 4 * 99 / (2**-1.25 + 3))]
    assert found.dis_scores()[[0, 3]] == pytest.approx(expected)


def test_score_of_a_set_that_is_limited() -> None:
    """Eq. 3.4 with M = 3 of Q = 8 keys, as Elliot et al. have it."""
    assert unique_scores(8, 3, "original")[:5].tolist() == [0, 7 * 6 * 5, 6 * 5, 5, 0]
    assert unique_scores(8, 3, "normalized")[2] == pytest.approx(30 / 64)
    assert unique_scores(5, 5, "original").tolist() == [0, 24, 6, 2, 1, 1]
    assert unique_scores(5, 5, "ihsn") == pytest.approx([0, 15 / 5, 7 / 10, 3 / 10, 1 / 5, 0])


def test_dis_suda_without_pairs_is_certain() -> None:
    assert dis_suda(np.array([0.0, 2.0]), 0, 5).tolist() == [0, 1]


def test_cells_that_say_nothing_are_in_no_unique() -> None:
    table = table_of(age=([20, 30, 40], numeric("age", 20, 60)))
    cells = {"age": Intervals(np.array([20.0, 30.0, 40.0]), np.array([60.0, 30.0, 40.0]))}
    assert released_keys(released(table, [0, 1, 2], cells))[:, 0].tolist() == [-1, 1, 2]


def test_keys_are_those_of_the_kept_records() -> None:
    table = wards()
    assert released_keys(released(table, [0, 0, 0, 1, 1, -1])).tolist() == [[0, 1]] * 3 + [[1, 0]] * 2


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most 62 keys"):
        minimal_sample_uniques(np.zeros((2, 63), dtype=np.int64))
    with pytest.raises(ConfigError, match="'max_size' parameter"):
        minimal_sample_uniques(np.zeros((2, 2), dtype=np.int64), 0)
    assert minimal_sample_uniques(np.zeros((2, 0), dtype=np.int64)).scores().tolist() == [0, 0]
    assert math.isclose(minimal_sample_uniques(np.array([[3]])).scores()[0], 2), "one key counts as three"


def test_two_keys_are_scored_as_three() -> None:
    """R's sdcMicro 5.8.1, suda2 with original_scores=TRUE and FALSE; it adds a constant key, and fails with one key."""
    keys = np.array([[1, 1], [1, 2], [2, 1], [2, 2], [2, 2], [3, 1], [1, 1], [4, 3], [1, -1]])
    found = minimal_sample_uniques(keys)
    assert found.scores().tolist() == [0, 1, 1, 0, 0, 2, 0, 4, 0]
    assert found.dis_scores()[[1, 5, 7]] == pytest.approx([0.006515912161, 0.015359584165, 0.035774050030], abs=1e-7)
    assert (100 * found.contributions()).tolist() == [75, 50]
    assert found.scores("ihsn") == pytest.approx([0, 1 / 3, 1 / 3, 0, 0, 1, 0, 2, 0])
    assert found.dis_scores("ihsn")[[1, 5, 7]] == pytest.approx(
        [0.005923712435, 0.022986682913, 0.052992768809], abs=1e-7
    )
    assert 100 * found.contributions("ihsn") == pytest.approx([72.72727273, 45.45454545])
    # the score of the paper's own equation knows the keys that there are
    assert found.scores("normalized")[[1, 5]] == pytest.approx([1 / 4, 1 / 2])
