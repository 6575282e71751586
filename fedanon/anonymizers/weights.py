"""Record weights (definitions 6-9 of the thesis): how far a record lies from the bulk of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.early import CoarseColumn
from fedanon.data.hierarchy import FloatArray
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn


def record_weights(
    columns: Sequence[CodedColumn],
    coarse: list[CoarseColumn],
    values: NDArray[Any],
    sizes: NDArray[Any],
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


def _average_rank(scores: FloatArray, sizes: NDArray[Any]) -> FloatArray:
    """Ascending rank among all records, ties at their average."""
    kinds, which = np.unique(scores, return_inverse=True)
    counts = np.bincount(which, weights=sizes, minlength=len(kinds))
    below = np.cumsum(counts) - counts
    return np.asarray((below + (counts + 1) / 2)[which])


def _ordinal_rank(scores: FloatArray, sizes: NDArray[Any]) -> FloatArray:
    """Ascending rank of the first record of every group, ties in order of position."""
    order = np.argsort(scores, kind="stable")
    before = np.empty(len(scores))
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    return before + 1
