"""Distance of published cells to original values, one column at a time: a record's distance is the sum over columns."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from fedanon.data.cells import Cells, Nodes, Numbers
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn
from fedanon.metrics.published import leaf_codes, positions
from fedanon.types import FloatArray, IntArray

#: distances of some cells of a column (rows) to all its codes (columns)
Distances = Callable[[Cells, CodedColumn], FloatArray]


def record_distances(cells: Cells, column: CodedColumn) -> FloatArray:
    r"""Distance of each cell to every code of a column (thesis, definitions 1-3).

    .. math:: d_N = |v_1 - v_2| / range, \qquad d_C = 0 \text{ if equal, else } leaves(LCA) / leaves(root)

    An interval stands at its midpoint; see :func:`fedanon.metrics.published.positions` for nodes of numbers. The
    lowest common ancestor of a node and a leaf below it is the node. Missing is one range away from any number.
    """
    if isinstance(column.attribute, Numeric):
        return _gaps(positions(cells), column) / column.attribute.width
    assert isinstance(cells, Nodes)
    return _tree_distances(cells.nodes, cells.hierarchy, leaf_codes(column, cells.hierarchy))


def thesis_distances(cells: Cells, column: CodedColumn) -> FloatArray:
    """:func:`record_distances` as the thesis's code reads numbers: an interval counts as its truncated midpoint."""
    if isinstance(column.attribute, Numeric):
        return _gaps(_whole_positions(cells, column.attribute), column) / column.attribute.width
    return record_distances(cells, column)


def raw_distances(cells: Cells, column: CodedColumn) -> FloatArray:
    """|v1 - v2| in the unit of the column; summed over numeric columns, the Manhattan distance of raw records."""
    assert isinstance(column.attribute, Numeric)
    return _gaps(positions(cells), column)


def squared_raw_distances(cells: Cells, column: CodedColumn) -> FloatArray:
    """The square of :func:`raw_distances`: summed over columns, it orders records as their Euclidean distance does."""
    return np.square(raw_distances(cells, column))


def standard_deviation(values: FloatArray) -> float:
    """Standard deviation of the values that are there; 1 if they do not vary."""
    known = values[~np.isnan(values)]
    return float(known.std(ddof=1)) if known.size and np.ptp(known) > 0 else 1.0


def _gaps(position: FloatArray, column: CodedColumn) -> FloatArray:
    """|position - value| for all pairs; the declared range where one of the two is missing, 0 where both are."""
    assert isinstance(column.attribute, Numeric)
    assert column.values is not None
    gaps = np.abs(position[:, None] - column.values)
    if column.has_missing or np.isnan(position).any():
        both = np.isnan(position)[:, None] & np.isnan(column.values)
        gaps = np.where(np.isnan(gaps), np.where(both, 0.0, column.attribute.width), gaps)
    return gaps


def _tree_distances(nodes: IntArray, tree: Hierarchy, leaves: IntArray) -> FloatArray:
    """Share of leaves below the common ancestor of each node and each of ``leaves``; a leaf of no tree is 1 away."""
    used, inverse = np.unique(nodes, return_inverse=True)
    distance = np.ones((len(used), tree.n_leaves + 1))
    for row, node in zip(distance, used.tolist(), strict=True):
        _fill(row, node, tree)
    return distance[:, leaves][inverse]


def _fill(row: FloatArray, node: int, tree: Hierarchy) -> None:
    """Distances of one node to all leaves, written from the root down so that the lowest ancestor wins."""
    path = [node]
    while path[-1] != tree.root:
        path.append(int(tree.parent[path[-1]]))
    for ancestor in reversed(path):
        row[tree.first[ancestor] : tree.last[ancestor] + 1] = tree.node_shares[ancestor]
    if node < tree.n_leaves:
        row[node] = 0.0


# ---- the thesis's reading of numbers -------------------------------------------------------------


def _whole_positions(cells: Cells, attribute: Numeric) -> FloatArray:
    """Truncated midpoints; a node of the age tree counts by the bounds in its label, the root by the range.

    The labels are read because the thesis's tree is off by one: its node '20-24' holds the leaves 21 to 25, and its
    code took the middle of the label. With '*' at the middle of the node's range this gives the published counts.
    """
    if isinstance(cells, Numbers):
        return cells.values
    middle = np.trunc(positions(cells))
    if not isinstance(cells, Nodes):
        return middle
    labels = [_label_middle(label) for label in cells.hierarchy.labels]
    labels[cells.hierarchy.root] = (attribute.low + attribute.high) / 2
    named = np.trunc(np.array(labels)[cells.nodes])
    return np.where(np.isnan(named), middle, named)


def _label_middle(label: str) -> float:
    """Middle of a label such as '20-24', NaN for any other."""
    bounds = re.fullmatch(r"(\d+)-(\d+)", label)
    return (int(bounds[1]) + int(bounds[2])) / 2 if bounds else np.nan
