"""Space: the quasi-identifiers of a stream as coordinates, what a box of them loses, and the cells that publish it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.coded_column import CodedColumn
from fedanon.data.schema import Numeric, Schema
from fedanon.data.spans import SpanTable, span_table
from fedanon.errors import ConfigError
from fedanon.types import FloatArray, IndexArray

#: a taxonomy with more leaves is searched in place of a table of all pairs of leaves
MOST_LEAVES = 512


class Space(NamedTuple):
    """What kernels need to know of the quasi-identifiers.

    Parameters
    ----------
    spans : loss of a cell in any column.
    start : where the table of a categorical column begins in ``table``; -1 if it has none.
    leaves : number of leaves of a categorical column.
    table : for columns with few leaves, the loss of the cell of every pair of leaves.
    """

    spans: SpanTable
    start: IndexArray
    leaves: IndexArray
    table: FloatArray

    @property
    def width(self) -> int:
        """Number of quasi-identifiers."""
        return len(self.start)


def coded_columns(schema: Schema) -> tuple[CodedColumn, ...]:
    """The quasi-identifiers of a stream, whose values are not known before they come."""
    schema.refuse_undecided()
    if not schema.quasi_identifiers:
        raise ConfigError("The schema declares no quasi-identifying columns; there is nothing to anonymize.")
    none = np.empty(0)
    return tuple(CodedColumn(a, none if isinstance(a, Numeric) else None) for a in schema.quasi_identifiers)


def make_space(columns: Sequence[CodedColumn]) -> Space:
    """The space of some columns."""
    spans = span_table(columns)
    start, leaves = np.full(len(columns), -1, dtype=np.int64), np.zeros(len(columns), dtype=np.int64)
    used = 0
    for i, column in enumerate(columns):
        if isinstance(column.attribute, Numeric):
            continue
        leaves[i] = column.hierarchy.n_leaves
        if leaves[i] <= MOST_LEAVES:
            start[i], used = used, used + int(leaves[i]) ** 2
    table = np.zeros(used + 1)
    for i in np.flatnonzero(start >= 0).tolist():
        one, other = np.indices((leaves[i], leaves[i])).reshape(2, -1)
        table[start[i] : start[i] + len(one)] = leaf_losses(spans, i, np.minimum(one, other), np.maximum(one, other))
    return Space(spans, start, leaves, table)


def leaf_losses(spans: SpanTable, c: int, low: IndexArray, high: IndexArray) -> FloatArray:
    """Loss of the cells that hold the leaves low..high of a categorical column, from its sparse table of maxima."""
    length = high - low
    level = np.frexp(np.maximum(length, 1))[1] - 1  # of the largest power of two that is not longer
    row = spans.offset[c] + level * spans.width[c] + low
    reach = np.maximum(length - (1 << level), 0)
    return np.where(length == 0, 0.0, np.maximum(spans.maxima[row], spans.maxima[row + reach]))


def box_cells(columns: Sequence[CodedColumn], low: FloatArray, high: FloatArray) -> dict[str, Cells]:
    """The cells that publish boxes, one row of ``low`` and ``high`` each."""
    cells: dict[str, Cells] = {}
    for i, column in enumerate(columns):
        if isinstance(column.attribute, Numeric):
            cells[column.name] = Intervals(low[:, i].copy(), high[:, i].copy())
        else:
            ends = low[:, i].astype(np.int32), high[:, i].astype(np.int32)
            cells[column.name] = Nodes(column.hierarchy.common_ancestor(*ends), column.hierarchy)
    return cells


def box_texts(columns: Sequence[CodedColumn], low: FloatArray, high: FloatArray) -> dict[str, str]:
    """The cells of one box as text, by column."""
    return {name: str(cells.texts()[0]) for name, cells in box_cells(columns, low[None], high[None]).items()}
