"""Published cells against original values: where a cell lies on the number line, and what it says truly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.hierarchy import MISSING, Hierarchy
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn
from fedanon.types import BoolArray, FloatArray, IntArray


def positions(cells: Cells) -> FloatArray:
    """The number that stands for each cell of a numeric column; NaN for a missing value.

    An interval stands at its midpoint, a number at itself, a node halfway between the least and the largest value
    of its leaves.
    """
    return node_positions(cells) if isinstance(cells, Nodes) else cells.midpoints()


def node_positions(cells: Nodes) -> FloatArray:
    """Middle of the numeric values of the leaves below each node; leaves that are no numbers do not count."""
    tree = cells.hierarchy
    values = leaf_values(tree)
    below = [values[tree.first[node] : tree.last[node] + 1] for node in range(len(tree.labels))]
    numeric = [leaves[~np.isnan(leaves)] for leaves in below]
    middle = [(leaves.min() + leaves.max()) / 2 if leaves.size else np.nan for leaves in numeric]
    return np.array(middle, dtype=np.float64)[cells.nodes]


def leaf_values(tree: Hierarchy) -> FloatArray:
    """The leaves of a taxonomy of numbers as numbers, NaN where a label is none."""
    return np.array([_number(label) for label in tree.labels[: tree.n_leaves]], dtype=np.float64)


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return np.nan


def leaf_codes(column: CodedColumn, tree: Hierarchy) -> IntArray:
    """The leaf of ``tree`` that each code of a column means; -1 where the tree does not list the value."""
    if column.values is None:
        if tree is column.hierarchy:
            return np.arange(column.size, dtype=np.int32)
        labels = column.hierarchy.labels[: column.size]
        return np.array([tree.codes.get(label, -1) for label in labels], dtype=np.int32)
    leaf = {value: code for code, value in enumerate(leaf_values(tree).tolist())}
    absent = tree.codes.get(MISSING, -1)
    return np.array([absent if v != v else leaf.get(v, -1) for v in column.values.tolist()], dtype=np.int32)


def covers(cells: Cells, column: CodedColumn, codes: NDArray[Any]) -> BoolArray:
    """Whether each cell is true of the original value with the code beside it.

    A missing value is covered by a missing cell and by a cell that says nothing: the whole range or the root.
    """
    if isinstance(cells, Nodes):
        tree, leaf = cells.hierarchy, leaf_codes(column, cells.hierarchy)[codes]
        below = (tree.first[cells.nodes] <= leaf) & (leaf <= tree.last[cells.nodes])
        return np.asarray(below | (cells.nodes == tree.root))
    if not isinstance(cells, Intervals):
        return exactly(cells, column, codes)
    assert isinstance(column.attribute, Numeric)
    assert column.values is not None
    value = column.values[codes]
    says_nothing = (cells.low <= column.attribute.low) & (cells.high >= column.attribute.high)
    inside = (cells.low <= value) & (value <= cells.high)
    return np.asarray(inside | (np.isnan(value) & (np.isnan(cells.low) | says_nothing)))


def exactly(cells: Cells, column: CodedColumn, codes: NDArray[Any]) -> BoolArray:
    """Whether each cell is the original value with the code beside it, and nothing more general."""
    if isinstance(cells, Nodes):
        return np.asarray(cells.nodes == leaf_codes(column, cells.hierarchy)[codes])
    assert column.values is not None
    value = column.values[codes]
    if isinstance(cells, Intervals):
        return _same(cells.low, value) & _same(cells.high, value)
    return _same(cells.values, value)


def _same(left: FloatArray, right: FloatArray) -> BoolArray:
    """Equality in which missing equals missing."""
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))
