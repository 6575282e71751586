"""Publishing rules: from groups of rows to the cells that stand for them."""

from __future__ import annotations

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes, Numbers, whole_range
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import IntArray
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn, Table


def publish_smallest_cells(table: Table, groups: Groups) -> dict[str, Cells]:
    """Intervals and lowest common ancestors: the least general truthful cells."""
    low, high = groups.minimum(table.codes), groups.maximum(table.codes)
    return {c.name: smallest_cells(table, c, low[:, i], high[:, i]) for i, c in enumerate(table.columns)}


def smallest_cells(table: Table, column: CodedColumn, low: IntArray, high: IntArray) -> Cells:
    """Cells that cover the codes low..high of one column."""
    wildcard = table.missing == "wildcard" and column.has_missing
    if isinstance(column.attribute, Numeric):
        return _intervals(column, low, high, wildcard=wildcard)
    nodes = column.hierarchy.common_ancestor(low, high)
    if wildcard:
        nodes = np.where(nodes == column.hierarchy.n_leaves - 1, column.hierarchy.root, nodes).astype(np.int32)
    return Nodes(nodes, column.hierarchy)


def _intervals(column: CodedColumn, low: IntArray, high: IntArray, *, wildcard: bool) -> Intervals:
    assert isinstance(column.attribute, Numeric)
    assert column.values is not None
    cells = Intervals(column.values[low], column.values[high])
    if not column.has_missing:
        return cells
    everything = whole_range(column.attribute, len(low))
    open_ = np.isnan(cells.high) & (wildcard | ~np.isnan(cells.low))
    return Intervals(np.where(open_, everything.low, cells.low), np.where(open_, everything.high, cells.high))


def own_cells(table: Table, column: CodedColumn) -> Cells:
    """A cell for every code of a column that publishes the code itself."""
    codes = np.arange(column.size, dtype=np.int32)
    return smallest_cells(table, column, codes, codes)


def publish_means(table: Table, groups: Groups) -> dict[str, Cells]:
    """Group means of numeric columns; not any record's true value."""
    cells: dict[str, Cells] = {}
    for i, column in enumerate(table.columns):
        assert column.values is not None
        cells[column.name] = Numbers(groups.mean(column.values[table.codes[:, i]]))
    return cells
