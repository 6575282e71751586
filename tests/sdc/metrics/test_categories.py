from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.cells import Intervals, Nodes
from fedanon.data.schema import Categorical
from fedanon.data.table import Table
from fedanon.metrics import evaluate
from fedanon.release.release import Release
from fedanon.sdc.metrics.categories import CategoryPair, conditional_entropy, contingency_distance, entropy
from tests.metrics.metric_cases import QUASI, UNEVEN, WARD_GROUPS, WARDS, numeric, released, table_of, wards

CODES = st.lists(st.integers(0, 3), min_size=1, max_size=30)


def pair(original: list[int], published: list[int]) -> CategoryPair:
    return CategoryPair(np.array(original), np.array(published))


def test_contingency_by_hand() -> None:
    first = pair([0, 0, 0, 1], [0, 0, 1, 1])
    second = pair([0, 0, 1, 1], [0, 0, 1, 0])
    # (0,0) 2 -> 2, (0,1) 1 -> 0, (1,1) 1 -> 1, (1,0) 0 -> 1
    found = contingency_distance(first, second)
    assert found.ut == pytest.approx(2 / 4)
    assert found.ut1 == pytest.approx(100 / 3)
    assert found.new_cells == 1


def test_suppressed_rows_are_missed_in_the_table() -> None:
    found = contingency_distance(pair([0, 0], [0, -1]), pair([0, 0], [0, -1]))
    assert found == (1.0, 50.0, 0)


def shuffled(order: list[int]) -> tuple[Table, Release]:
    """Two categorical columns; the first is published in another order."""
    wards, codes = [0, 0, 1, 2], [0, 1, 2, 3]
    table = table_of(
        ward=([WARDS.labels[c] for c in wards], Categorical("ward", QUASI, WARDS)),
        code=([UNEVEN.labels[c] for c in codes], Categorical("code", QUASI, UNEVEN)),
    )
    nodes = np.array([wards[i] for i in order], dtype=np.int32)
    return table, released(table, [0, 1, 2, 3], {"ward": Nodes(nodes, WARDS)})


def test_metrics_by_hand() -> None:
    names = ["categories_changed", "contingency_ut", "contingency_ut1", "contingency_new_cells", "new_missing"]
    assert list(evaluate(*shuffled([0, 1, 2, 3]), names).values()) == [0, 0, 0, 0, 0]
    # the last two exchanged: two cells emptied, two made, of 3 x 4
    assert list(evaluate(*shuffled([0, 1, 3, 2]), names).values()) == [2, pytest.approx(4 / 12), 50, 2, 0]


def test_generalized_and_suppressed_cells_are_changed() -> None:
    table = wards()
    # the first three are published as Surgery, two onco as they are, the last is suppressed
    assert evaluate(table, released(table, WARD_GROUPS), ["categories_changed"])["categories_changed"] == 4


def test_new_missing_values() -> None:
    table = table_of(
        "category",
        age=([20, None, 40, 50], numeric("age", 20, 60)),
        ward=(["onco", None, "onco", "ortho"], Categorical("ward", QUASI, WARDS)),
    )
    tree = table.columns[1].hierarchy
    nodes = np.array([tree.root, tree.n_leaves - 1, tree.codes["onco"]], dtype=np.int32)
    ages = Intervals(np.array([20.0, np.nan, 20]), np.array([60.0, np.nan, 40]))
    release = released(table, [0, 1, 2, -1], {"age": ages, "ward": Nodes(nodes, tree)})
    # both cells of the first row and of the suppressed one; the second was missing, the third still says something
    assert evaluate(table, release, ["new_missing"])["new_missing"] == 4


@given(CODES)
def test_what_is_published_as_it_is_leaves_nothing_unknown(codes: list[int]) -> None:
    assert conditional_entropy(np.array(codes), np.array(codes)) == 0
    assert conditional_entropy(np.array(codes), np.zeros(len(codes))) == pytest.approx(entropy(np.array(codes)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_chain_rule(records: list[tuple[int, int]]) -> None:
    x, y = np.array(records).T
    assert conditional_entropy(x, y) == pytest.approx(entropy(x * 4 + y) - entropy(y), abs=1e-12)


def test_entropy_metrics() -> None:
    found = evaluate(*shuffled([0, 0, 0, 0]), ["conditional_entropy", "released_entropy"])
    # the wards of four are published as one: H(X|Y) = H(1/2, 1/4, 1/4); the codes are as they were
    assert found["conditional_entropy"] == pytest.approx((1.5 * math.log(2)) / 2)
    assert found["released_entropy"] == pytest.approx(math.log(4) / 2)
