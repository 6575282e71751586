"""What GFKMC prepares: coarser values, by which records are then compared, and the weights of the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedanon.anonymizers.gfkmc.das import column_values, separatrices
from fedanon.data.cells import Cells, Nodes, Numbers
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn, Table
from fedanon.types import AnyArray, FloatArray, IndexArray, IntArray


@dataclass(frozen=True, eq=False)
class CoarseColumn:
    """The coarse values of one column.

    Parameters
    ----------
    of_code : coarse value of every code.
    low, high : positions each coarse value covers, in the coordinates of :func:`fedanon.data.spans.points`.
    publish : the cells of given coarse values.
    numeric : whether the values are numbers.
    """

    of_code: IndexArray
    low: FloatArray
    high: FloatArray
    publish: Callable[[AnyArray], Cells]
    numeric: bool


class CoarseCells(NamedTuple):
    """Groups of records as entries in one list of all coarse values, for the kernel."""

    flat: IntArray
    start: IndexArray
    low: FloatArray
    high: FloatArray


def coarse_columns(table: Table, *, das: bool, parents: bool) -> list[CoarseColumn]:
    """Numeric columns by DAS and categorical values as their parents, or both as they are."""
    columns = []
    for i, column in enumerate(table.columns):
        if column.values is not None:
            columns.append(_das_column(table, i) if das else _numeric_column(column))
        else:
            columns.append(_categorical_column(table, column, parents=parents))
    return columns


def coarse_cells(columns: list[CoarseColumn], values: AnyArray) -> CoarseCells:
    """Records given by their coarse values (rows x columns)."""
    start = np.concatenate([[0], np.cumsum([len(c.low) for c in columns])]).astype(np.int64)
    flat = np.ascontiguousarray(values + start[:-1], dtype=np.int32)
    return CoarseCells(flat, start, np.concatenate([c.low for c in columns]), np.concatenate([c.high for c in columns]))


def _numeric_column(column: CodedColumn) -> CoarseColumn:
    values, positions = column.values, column.positions
    assert values is not None
    return CoarseColumn(np.arange(column.size), positions, positions, lambda at: Numbers(values[at]), numeric=True)


def _das_column(table: Table, index: int) -> CoarseColumn:
    column = table.columns[index]
    assert column.values is not None
    groups = separatrices(column_values(table, index))
    of_code = groups.group_of(column.values)
    means = groups.means
    if column.has_missing:
        of_code[-1] = len(means)
        means = np.append(means, np.nan)
    positions = np.where(np.isnan(means), column.positions[-1], means)
    return CoarseColumn(of_code, positions, positions, lambda at: Numbers(means[at]), numeric=True)


def _categorical_column(table: Table, column: CodedColumn, *, parents: bool) -> CoarseColumn:
    tree = column.hierarchy
    nodes = np.arange(tree.n_leaves, dtype=np.int32)
    if parents:
        # a value whose parent is the root stays: the root says nothing at all
        above = tree.parent[nodes]
        nodes = np.where(above == tree.root, nodes, above).astype(np.int32)
    kinds, of_code = np.unique(nodes, return_inverse=True)
    hidden = table.missing == "wildcard" and column.has_missing
    shown = np.where(hidden & (kinds == tree.n_leaves - 1), tree.root, kinds).astype(np.int32)
    low, high = tree.first[kinds].astype(np.float64), tree.last[kinds].astype(np.float64)
    return CoarseColumn(of_code, low, high, lambda at: Nodes(shown[at], tree), numeric=False)


# ---- Record weights (definitions 6-9 of the thesis) ----------------------------------------------


def record_weights(
    columns: Sequence[CodedColumn],
    coarse: list[CoarseColumn],
    values: AnyArray,
    sizes: AnyArray,
    *,
    ordinal: bool,
) -> FloatArray:
    """W = m - AR for one record of every group of equal rows, m the number of records.

    AR is the mean of the rank of N_score (L1 distance to the mean, descending) and of C_score (mean frequency of the
    categories, ascending). Numeric terms are divided by the range and tied ranks averaged, unless ``ordinal``: then
    numbers count raw and ties are ranked by position, as in the thesis's code.
    """
    numeric_score, category_score = np.zeros(len(values)), np.zeros(len(values))
    n_categories = max(sum(not column.numeric for column in coarse), 1)
    for i, column in enumerate(coarse):
        attribute = columns[i].attribute
        if isinstance(attribute, Numeric):
            at = column.low[values[:, i]]
            away = np.abs(at - np.average(at, weights=sizes))
            numeric_score += away if ordinal else away / attribute.width
        else:
            frequency = np.bincount(values[:, i], weights=sizes, minlength=len(column.low))
            category_score += frequency[values[:, i]] / n_categories
    rank = _ordinal_rank if ordinal else _average_rank
    m = int(sizes.sum())
    average = ((m + 1 - rank(numeric_score, sizes)) + rank(category_score, sizes)) / 2
    return np.asarray(m - average)


def _average_rank(scores: FloatArray, sizes: AnyArray) -> FloatArray:
    """Ascending rank among all records, ties at their average."""
    kinds, which = np.unique(scores, return_inverse=True)
    counts = np.bincount(which, weights=sizes, minlength=len(kinds))
    below = np.cumsum(counts) - counts
    return np.asarray((below + (counts + 1) / 2)[which])


def _ordinal_rank(scores: FloatArray, sizes: AnyArray) -> FloatArray:
    """Ascending rank of the first record of every group, ties in order of position."""
    order = np.argsort(scores, kind="stable")
    before = np.empty(len(scores))
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    return before + 1
