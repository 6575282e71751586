"""Groups: a partition of a table's rows, and the reductions every method and metric needs over it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.types import IntArray

SUPPRESSED = -1


@dataclass(frozen=True, eq=False)
class Groups:
    """A group number for every row: 0..count-1, or SUPPRESSED.

    Build with :meth:`from_labels`, which renumbers arbitrary labels.
    """

    labels: IntArray
    count: int

    @classmethod
    def from_labels(cls, labels: NDArray[Any]) -> Groups:
        """Groups from arbitrary integer labels; negative ones mean suppressed. Numbering keeps the labels' order."""
        labels = np.asarray(labels)
        kept = labels >= 0
        names, dense = np.unique(labels[kept], return_inverse=True)
        numbers = np.full(len(labels), SUPPRESSED, dtype=np.int32)
        numbers[kept] = dense
        return cls(numbers, len(names))

    @classmethod
    def equal_rows(cls, columns: NDArray[Any]) -> Groups:
        """One group for every distinct row of a 2-D array, numbered in lexicographic order."""
        if len(columns) == 0:
            return cls(np.empty(0, dtype=np.int32), 0)
        if (packed := _packed(columns)) is not None:
            values, numbers = np.unique(packed, return_inverse=True)
            return cls(numbers.astype(np.int32), len(values))
        order = np.lexsort(columns.T[::-1]) if columns.shape[1] else np.arange(len(columns))
        ordered = columns[order]
        new = np.zeros(len(columns), dtype=np.int32)
        new[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
        labels = np.empty(len(columns), dtype=np.int32)
        labels[order] = np.cumsum(new, dtype=np.int32)
        return cls(labels, int(labels[order[-1]]) + 1)

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Mask of the rows in no group."""
        return self.labels < 0

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows in each group."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Row numbers, group by group, within a group in row order; suppressed rows are left out."""
        rows = np.argsort(self.labels, kind="stable")
        return rows[len(rows) - int(self.sizes.sum()) :]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each group begins in :attr:`order`."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64) if self.count else np.empty(0, int)

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of every group."""
        return self.order[self.starts]

    def minimum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Minimum of ``values`` (rows first) within every group."""
        return np.minimum.reduceat(values[self.order], self.starts, axis=0) if self.count else values[:0]

    def maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Maximum of ``values`` within every group."""
        return np.maximum.reduceat(values[self.order], self.starts, axis=0) if self.count else values[:0]

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of ``values`` within every group."""
        return np.add.reduceat(values[self.order], self.starts, axis=0) if self.count else values[:0]

    def mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Mean of ``values`` within every group."""
        sums = self.total(values.astype(np.float64))
        return np.asarray((sums.T / self.sizes).T, dtype=np.float64)

    def distinct(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Number of distinct ``values`` within every group."""
        kept = ~self.suppressed
        pairs = Groups.equal_rows(np.column_stack([self.labels[kept], values[kept]]))
        return np.bincount(self.labels[kept][pairs.first_rows], minlength=self.count) if self.count else self.sizes

    def count_people(self, persons: NDArray[Any] | None) -> NDArray[np.int64]:
        """Number of people in every group; ``persons`` numbers the person of each row, None if a row is a person."""
        return self.sizes if persons is None else self.distinct(persons)


def _packed(columns: NDArray[Any]) -> NDArray[np.int64] | None:
    """Rows of whole numbers as one number each, in the same order; None where that takes more than 62 bits."""
    if columns.dtype.kind not in "iu" or not columns.shape[1]:
        return None
    low, high = columns.min(axis=0).tolist(), columns.max(axis=0).tolist()
    if math.prod(b - a + 1 for a, b in zip(low, high, strict=True)) >= 2**62:
        return None
    packed = np.zeros(len(columns), dtype=np.int64)
    for column, a, b in zip(columns.T, low, high, strict=True):
        packed = packed * (b - a + 1) + (column.astype(np.int64) - a)
    return packed
