"""Spans: the geometry of the quasi-identifiers in a form compiled kernels can use.

A record is a point: numeric attributes keep their value, categorical ones the number of their leaf. The loss of
publishing the smallest cell over the positions lo..hi of one column is its *span*. For numbers that is (hi - lo) /
range. For leaves it is a property of the lowest common ancestor of lo and hi; any property that grows towards the root
is the maximum over the neighbors lo..hi, so a sparse table of maxima answers it in two look-ups for any tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Nodes, Numbers
from fedanon.data.coded_column import CodedColumn
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric
from fedanon.types import FloatArray, IntArray

if TYPE_CHECKING:
    from fedanon.data.table import Table

Measure = Literal["leaves", "heights"]


class SpanTable(NamedTuple):
    """Spans of all columns.

    Parameters
    ----------
    scale : numeric columns, 1 / range; 0 marks a categorical column.
    offset, width : where the sparse table of a categorical column starts in ``maxima``, and how long a level is.
    maxima : for level j and position i, the largest neighbor property in i .. i + 2**j - 1.
    cap : the largest span a numeric column can have.
    """

    scale: FloatArray
    offset: NDArray[np.int64]
    width: NDArray[np.int64]
    maxima: FloatArray
    cap: float


def points(table: Table) -> FloatArray:
    """The records of a table as points, one column a quasi-identifier."""
    result = table.codes.astype(np.float64)
    for i, column in enumerate(table.columns):
        if column.values is not None:
            result[:, i] = column.positions[table.codes[:, i]]
    return result


def span_table(columns: Sequence[CodedColumn], measure: Measure = "leaves") -> SpanTable:
    """Spans of ``columns`` by share of leaves (NCP) or by height (the thesis's IL)."""
    scale = np.zeros(len(columns))
    offset, width = np.zeros((2, len(columns)), dtype=np.int64)
    parts: list[FloatArray] = []
    used = 0
    for i, column in enumerate(columns):
        if isinstance(column.attribute, Numeric):
            scale[i] = 1.0 / column.attribute.width
            continue
        tree = column.hierarchy
        levels = _sparse_maxima((tree.leaf_loss if measure == "leaves" else tree.height_loss)[tree.neighbor_ancestor])
        offset[i], width[i] = used, max(tree.n_leaves - 1, 1)
        used += levels.size
        parts.append(levels.ravel())
    # one more behind the last: the span of a single leaf is read before it is multiplied by zero
    return SpanTable(scale, offset, width, np.concatenate([*parts, np.zeros(1)]), 1.0)


def _sparse_maxima(steps: FloatArray) -> FloatArray:
    levels = [steps if steps.size else np.zeros(1)]
    reach = 1
    while 2 * reach <= len(steps):
        below = levels[-1]
        level = below.copy()
        level[: len(below) - reach] = np.maximum(below[:-reach], below[reach:])
        levels.append(level)
        reach *= 2
    return np.stack(levels)


def cell_bounds(cells: Cells, attribute: Numeric | Categorical) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest position each cell covers, in the coordinates of :func:`points`."""
    if isinstance(cells, Nodes):
        low, high = _node_bounds(cells.nodes, cells.hierarchy)
        return low, high
    assert isinstance(attribute, Numeric)
    beyond = attribute.high + attribute.width
    if isinstance(cells, Numbers):
        at = np.nan_to_num(cells.values, nan=beyond)
        return at, at
    return np.nan_to_num(cells.low, nan=beyond), np.nan_to_num(cells.high, nan=beyond)


def _node_bounds(nodes: NDArray[Any], tree: Hierarchy) -> tuple[FloatArray, FloatArray]:
    return tree.first[nodes].astype(np.float64), tree.last[nodes].astype(np.float64)


class CodeTable(NamedTuple):
    """Records as positions in one long list of all codes of all columns, so that one look-up table serves a row.

    Parameters
    ----------
    flat : entry of each record and column in the list.
    start : where each column begins in the list; one more entry marks the end.
    position : the point coordinate of every entry.
    """

    flat: IntArray
    start: NDArray[np.int64]
    position: FloatArray


def code_table(table: Table) -> CodeTable:
    """The records of a table for kernels that compare one cell with very many records."""
    start = np.concatenate([[0], np.cumsum([c.size for c in table.columns])]).astype(np.int64)
    position = [
        column.positions if column.values is not None else np.arange(column.size, dtype=np.float64)
        for column in table.columns
    ]
    flat = np.ascontiguousarray(table.codes + start[:-1], dtype=np.int32)
    return CodeTable(flat, start, np.concatenate(position))


# ---- The taxonomies of several columns laid end to end, for kernels that walk them ---------------


class TreeTable(NamedTuple):
    """Node v of column c has its entries at offset[c] + v; numeric columns have none."""

    offset: NDArray[np.int64]
    parent: IntArray
    first: IntArray
    last: IntArray


def tree_table(columns: Sequence[CodedColumn]) -> TreeTable:
    """Trees of the categorical columns."""
    trees = [c.hierarchy if c.values is None else None for c in columns]
    lengths = [len(t.labels) if t is not None else 0 for t in trees]
    offset = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    present = [t for t in trees if t is not None]
    return TreeTable(offset, *(_joined(present, part) for part in ("parent", "first", "last")))


def _joined(trees: list[Hierarchy], part: str) -> IntArray:
    return np.concatenate([np.empty(0, dtype=np.int32), *(getattr(tree, part) for tree in trees)])
