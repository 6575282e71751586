"""Bins follow from the schema, cover the values they stand for, and lose what the metrics say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import UpdateRejectedError
from fedanon.joint.axes import Axis, bin_edges, bin_rows, bucket_starts, make_axes
from fedanon.joint.queries import RegionQuery
from fedanon.joint.regions import GrowingRegions, RegionTree
from tests.anonymizers.tables import hierarchies, tables

QUASI = Role.QUASI_IDENTIFYING
AGE = Numeric("age", QUASI, 17.0, 90.0, integer=True)
WAGE = Numeric("wage", QUASI, 0.0, 1.0)
TREE = Hierarchy.from_nested({"A": ["a1", "a2", "a3"], "B": ["b1", "b2"]})


@given(tables())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_every_value_lies_in_its_bin(table: Table) -> None:
    bins = bin_rows(table)
    for i, column in enumerate(table.columns):
        axis = make_axes(table.schema)[i]
        assert bins[:, i].min() >= 0
        assert bins[:, i].max() < axis.n_bins
        if column.values is not None:
            values, (low, high) = column.values[table.codes[:, i]], bin_edges(column.attribute)  # type: ignore[arg-type]
            missing = np.isnan(values)
            assert (bins[missing, i] == axis.missing).all()
            assert (low[bins[~missing, i]] <= values[~missing]).all()
            assert (high[bins[~missing, i]] >= values[~missing]).all()


def test_losses_are_those_of_ncp() -> None:
    age, wage, ward = make_axes(Schema((AGE, WAGE, Categorical("ward", QUASI, TREE))))
    assert age.loss(np.array([0, 3, 0]), np.array([73, 3, 74])).tolist() == [1.0, 0.0, 1.0]  # the last may be missing
    assert wage.loss(np.array([0]), np.array([511])).tolist() == [0.5]
    assert ward.loss(np.array([0, 0, 0, 3]), np.array([0, 2, 3, 4])).tolist() == [0.0, 0.6, 1.0, 0.4]


def test_buckets_are_bins_children_or_equal_parts() -> None:
    age, _, ward = make_axes(Schema((AGE, WAGE, Categorical("ward", QUASI, TREE))))
    assert bucket_starts(age, 10, 13, 8).tolist() == [10, 11, 12, 13]
    assert bucket_starts(age, 0, 73, 2).tolist() == [0, 37]
    assert bucket_starts(age, 0, 6, 3).tolist() == [0, 3, 5]
    assert bucket_starts(ward, 0, 4, 2).tolist() == [0, 3]
    assert bucket_starts(ward, 1, 4, 2).tolist() == [1, 3]


@given(hierarchies())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_axes_travel(tree: Hierarchy) -> None:
    axis = make_axes(Schema((Categorical("q", QUASI, tree),)))[0]
    there = Axis.from_array(axis.to_array())
    ends = np.arange(tree.n_leaves, dtype=np.int32)
    np.testing.assert_array_equal(there.loss(ends * 0, ends), axis.loss(ends * 0, ends))


@pytest.mark.parametrize("change", [{4: 0}, {1: -1}, {3: 99}, {-1: 7}, {0: 5}])
def test_a_taxonomy_that_is_no_tree_is_refused(change: dict[int, int]) -> None:
    array = make_axes(Schema((Categorical("q", QUASI, TREE),)))[0].to_array()
    for place, value in change.items():
        array[place] = value
    with pytest.raises(UpdateRejectedError):
        Axis.from_array(array if 0 not in change else array[:-1])


def test_a_tree_that_does_not_end_is_refused() -> None:
    loop = np.array([[0, -1, -1], [0, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=np.int32)
    with pytest.raises(UpdateRejectedError, match=r"not (a tree|trees)"):
        RegionTree.from_array(loop, 1)


def test_people_are_counted_once_in_a_region() -> None:
    schema = Schema((AGE,))
    table = Table.from_frame(pd.DataFrame({"age": [20, 30, 30, 60]}), schema)
    regions = GrowingRegions([75])
    regions.cut(0, 0, 0, 40)
    grain = np.full((2, 1), 128, dtype=np.int32)
    asked = np.array([1, 2], dtype=np.int32)
    layout = RegionQuery(regions.router, asked, *regions.boxes(asked), grain).layout(make_axes(schema))
    rows, people = np.split(layout.count(bin_rows(table), np.array([7, 7, 8, 7], dtype=np.int32)), 2)
    assert (rows[3], rows[13], rows[43], rows.sum()) == (1, 2, 1, 4)
    assert (people[3], people[13], people[43], people.sum()) == (1, 1, 1, 3)
