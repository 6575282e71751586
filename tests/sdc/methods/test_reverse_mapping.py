"""Reverse mapping: the permutation example of Morais 2022 (tables 3 and 4) to the digit, and what ties do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.data.cells import Numbers
from fedanon.sdc.methods.base import own_columns
from fedanon.sdc.methods.numeric import reverse_map
from fedanon.sdc.methods.rank_methods import ReverseMapping
from tests.sdc.methods.drawn import correlated_table, original, published, table_of

X = {"x1": [13, 20, 2, 15, 29], "x2": [135, 52, 123, 165, 160], "x3": [3707, 826, -1317, 2419, -1008]}
Y = {"x1": [8, 20, -1, 18, 29], "x2": [160, 57, 122, 135, 164], "x3": [3248, 822, 248, 597, -1927]}
Z = {"x1": [13, 20, 2, 15, 29], "x2": [160, 52, 123, 135, 165], "x3": [3707, 2419, -1008, 826, -1317]}
#: Y - Z; the printed table has 0 for 3 and -1 for 0
E = {"x1": [-5, 0, -3, 3, 0], "x2": [0, 5, -1, 0, -1], "x3": [-459, -1597, 1256, -229, -610]}


def test_the_permutation_example() -> None:
    table = table_of(X)
    current = {**own_columns(table), **{name: Numbers(np.array(y, dtype=float)) for name, y in Y.items()}}
    changed = ReverseMapping().change(table, current, np.random.default_rng(0))
    for name, cells in changed.items():
        assert isinstance(cells, Numbers)
        np.testing.assert_array_equal(cells.values, Z[name])
        np.testing.assert_array_equal(Y[name] - cells.values, E[name])


@settings(max_examples=100, derandomize=True)
@given(pairs=st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=1), seed=st.integers(0, 9))
def test_the_values_stay_and_the_order_is_the_others(pairs: list[tuple[int, int]], seed: int) -> None:
    x, y = np.array(pairs, dtype=float).T
    z = reverse_map(x, y, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(z), np.sort(x))
    low, high = np.meshgrid(np.arange(len(x)), np.arange(len(x)))
    assert np.all(z[low[y[low] < y[high]]] <= z[high[y[low] < y[high]]])


def test_equal_values_do_not_give_the_originals_back() -> None:
    """Groups published alike keep their secret: with ties broken by the originals, all would come back."""
    x = np.arange(1_000.0)
    y = np.floor(x / 100)
    z = reverse_map(x, y, np.random.default_rng(0))
    assert (z == x).mean() < 0.05
    np.testing.assert_array_equal(np.floor(z / 100), y)


def test_alone_it_changes_nothing() -> None:
    table = table_of({"a": [3, 1, 1, 2], "b": [0, 0, 5, 5]})
    np.testing.assert_array_equal(published(table, "reverse_mapping"), original(table))


@pytest.mark.parametrize("method", ["additive_noise", "romm", "egadp", "multiplicative_noise"])
def test_any_method_can_be_followed_by_it(method: str) -> None:
    table = correlated_table(200)
    plain, mapped = published(table, method), published(table, method, reverse_map=True)
    np.testing.assert_array_equal(np.sort(mapped, axis=0), np.sort(original(table), axis=0))
    np.testing.assert_array_equal(np.argsort(mapped, axis=0), np.argsort(plain, axis=0))
