from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Cells, Intervals, Nodes, Numbers
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical
from fedanon.data.table import CodedColumn, Table
from fedanon.metrics import distances
from fedanon.metrics import linkage as nearest
from fedanon.metrics.linkage import (
    dld,
    linkage_expected,
    linkage_expected_share,
    linkage_first,
    linkage_thesis,
)
from fedanon.metrics.published import node_positions
from fedanon.release.release import Release
from fedanon.types import FloatArray
from tests.metrics.metric_cases import QUASI, UNEVEN, WARD_GROUPS, numeric, released, releases, table_of, tables, wards

AGES = Hierarchy.from_nested({"0-4": ["1", "2", "3", "4", "5"], "5-9": ["6", "7", "8", "9", "10"]})


def test_linkage_by_hand() -> None:
    table = wards()
    release = released(table, WARD_GROUPS)
    # [20, 30] in Surgery is nearest to the patient of 24; the two equal oncology patients share one hit
    assert linkage_expected(table, release) == pytest.approx(2)
    assert linkage_expected_share(table, release) == pytest.approx(2 / 5)
    assert linkage_first(table, release) == 2


def test_ties_are_shared_or_go_to_the_first() -> None:
    table = table_of(x=([9, 4, 6], numeric("x", 0, 10)))
    release = released(table, [0, 1, -1], {"x": Numbers(np.array([9.0, 5.0]))})
    assert linkage_expected(table, release) == pytest.approx(1.5)  # 4 and 6, the latter suppressed, are both 1 away
    assert linkage_first(table, release) == 2


def test_sums_that_are_equal_up_to_rounding_are_ties() -> None:
    # both originals are 0.1 + 0.2 + 0.3 away, but the terms come in another order
    columns = {name: numeric(name, 0, 1) for name in "abc"}
    table = table_of(a=([0.1, 0.3], columns["a"]), b=([0.2, 0.2], columns["b"]), c=([0.3, 0.1], columns["c"]))
    zero = {name: Numbers(np.array([0.0])) for name in "abc"}
    assert linkage_expected(table, released(table, [0, -1], zero)) == pytest.approx(0.5)


def test_dld_by_hand() -> None:
    table = table_of(x=([0, 2, 10, 12], numeric("x", 0, 12)))
    assert dld(table, released(table, [0, 0, 1, 1])) == pytest.approx(0.5)
    assert dld(table, released(table, [0, 1, 2, 3])) == 1.0
    assert dld(table, released(table, [0, 1, 0, 1])) == 0.0  # the midpoints 5 and 7 are nearest to strangers


def test_distance_of_nodes_to_leaves() -> None:
    nodes = [UNEVEN.nodes[label] for label in ("a", "B", "A", "E", "*")]
    table = table_of(code=(list("abcdef"), Categorical("code", QUASI, UNEVEN)))
    found = distances.record_distances(Nodes(np.array(nodes, dtype=np.int32), UNEVEN), table.columns[0]) * 6
    expected = [
        [0, 3, 3, 4, 6, 6],
        [3, 3, 3, 4, 6, 6],
        [4, 4, 4, 4, 6, 6],
        [6, 6, 6, 6, 1, 6],
        [6, 6, 6, 6, 6, 6],
    ]
    np.testing.assert_allclose(found, expected)


def test_positions_of_nodes_and_the_thesis_reading() -> None:
    table = table_of(age=([1, 9], numeric("age", 1, 9, AGES)))
    cells = Nodes(np.array([AGES.nodes[label] for label in ("0-4", "5-9", "*", "7")], dtype=np.int32), AGES)
    np.testing.assert_allclose(node_positions(cells), [3, 8, 5.5, 7])
    column = table.columns[0]
    np.testing.assert_allclose(distances.thesis_distances(cells, column)[:, 0] * 8 + 1, [2, 7, 5, 7])
    intervals = Intervals(np.array([1.0]), np.array([4.0]))
    np.testing.assert_allclose(distances.thesis_distances(intervals, column)[:, 0] * 8 + 1, [2])
    np.testing.assert_allclose(distances.thesis_distances(Numbers(np.array([2.5])), column)[:, 0] * 8 + 1, [2.5])


def test_missing_is_one_range_away_from_every_number() -> None:
    table = table_of("category", age=([2, None], numeric("age", 0, 4)))
    cells = Intervals(np.array([1.0, np.nan]), np.array([2.0, np.nan]))
    np.testing.assert_allclose(distances.record_distances(cells, table.columns[0]), [[0.125, 1], [1, 0]])


def test_nothing_released_nothing_linked() -> None:
    table = wards()
    release = released(table, [-1] * 6)
    assert linkage_expected(table, release) == 0
    assert math.isnan(linkage_expected_share(table, release))
    assert math.isnan(dld(table, release))


# ---- against all pairs of rows ------------------------------------------------------------------


def all_pairs(table: Table, release: Release, distance: distances.Distances, columns: list[int]) -> np.ndarray:
    """Distance of every released row to every original row; rows first as released."""
    labels = release.groups.labels
    total = np.zeros((len(table), len(table)))
    for i in columns:
        column = table.columns[i]
        by_group = distance(release.cells[column.name], column)
        total += by_group[labels][:, table.codes[:, i]]
    return total


def oracle(table: Table, release: Release, distance: distances.Distances, columns: list[int]) -> tuple[float, float]:
    kept = np.flatnonzero(~release.suppressed)
    if kept.size == 0:
        return 0.0, 0.0
    pairs = all_pairs(table, release, distance, columns)[kept]
    near = pairs <= pairs.min(axis=1, keepdims=True) * (1 + 1e-9) + 1e-15
    own = near[np.arange(len(kept)), kept]
    return float((own / near.sum(axis=1)).sum()), float((near.argmax(axis=1) == kept).sum())


def squared_differences(table: Table) -> distances.Distances:
    """In deviations of the originals: :func:`dld` compares by them, as ``record_distances`` does by ranges."""
    spread = {}
    for i, column in enumerate(table.columns):
        if column.values is not None:
            spread[column.name] = distances.standard_deviation(column.values[table.codes[:, i]])

    def squares(cells: Cells, column: CodedColumn) -> FloatArray:
        gaps = distances.record_distances(cells, column) * column.attribute.width  # type: ignore[union-attr]
        return np.square(gaps / spread[column.name])

    return squares


def check(table: Table, release: Release) -> None:
    every = list(range(len(table.columns)))
    expected, first = oracle(table, release, distances.record_distances, every)
    assert linkage_expected(table, release) == pytest.approx(expected)
    assert linkage_first(table, release) == first
    assert linkage_thesis(table, release) == oracle(table, release, distances.thesis_distances, every)[1]
    numbers = [i for i in every if table.columns[i].values is not None and np.ptp(table.codes[:, i]) > 0]
    share = dld(table, release)
    if numbers and not release.suppressed.all():
        expected, _ = oracle(table, release, squared_differences(table), numbers)
        assert share * (~release.suppressed).sum() == pytest.approx(expected)
    else:
        assert math.isnan(share)


@given(releases())
def test_linkage_of_arbitrary_groups_agrees_with_all_pairs(case: tuple[Table, Release]) -> None:
    check(*case)


@given(releases())
def test_small_chunks_change_nothing(case: tuple[Table, Release]) -> None:
    whole = linkage_expected(*case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "CHUNK", 1)
        assert linkage_expected(*case) == pytest.approx(whole)


METHODS: dict[str, Callable[[], object]] = {
    "identity": lambda: ANONYMIZERS["identity"](),
    "mondrian": lambda: ANONYMIZERS["mondrian"](k=2),
    "relaxed": lambda: ANONYMIZERS["mondrian"](k=2, relaxed=True),
}


@pytest.mark.parametrize("method", METHODS)
@given(table=tables())
def test_linkage_of_methods_agrees_with_all_pairs(method: str, table: Table) -> None:
    check(table, METHODS[method]().anonymize(table, rng=0))  # type: ignore[attr-defined]


@given(data=st.data(), table=tables())
def test_linkage_of_numbers_off_the_originals_agrees_with_all_pairs(data: st.DataObject, table: Table) -> None:
    labels = data.draw(st.lists(st.integers(0, 4), min_size=len(table), max_size=len(table)))
    count = len(set(labels))
    noisy = {
        c.name: Numbers(np.array(data.draw(st.lists(st.floats(-5, 20), min_size=count, max_size=count))))
        for c in table.columns
        if c.values is not None
    }
    check(table, released(table, labels, noisy))
