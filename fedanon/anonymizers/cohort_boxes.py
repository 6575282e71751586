"""CohortBoxes: the smallest cells of every cohort, what they lose, and what one person more or less would change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fedanon.data.coded_column import CodedColumn
from fedanon.data.table import Table
from fedanon.types import FloatArray, IndexArray, IntArray

#: a column with at most this many codes has its losses in a table
TABULATED = 512


class CohortBoxes:
    """The rows of cohorts and the least and greatest code of each in every column.

    Parameters
    ----------
    table : whose rows they are.
    cohort_of_row : the cohort of each row; -1 where it is in none.
    count : number of cohorts.
    """

    def __init__(self, table: Table, cohort_of_row: IntArray, count: int) -> None:
        self._table, self._codes = table, table.codes
        self._column_losses = [_tabulate(column) for column in table.columns]
        self.members: list[list[int]] = [[] for _ in range(count)]
        for row in np.flatnonzero(cohort_of_row >= 0).tolist():
            self.members[cohort_of_row[row]].append(row)
        self.sizes: IndexArray = np.zeros(count, dtype=np.int64)
        #: what the rows of a cohort lose together
        self.losses: FloatArray = np.zeros(count)
        self._low, self._high = np.zeros((2, count, table.codes.shape[1]), dtype=table.codes.dtype)
        # the box of the others of a row's cohort
        self._rest_low, self._rest_high = table.codes.copy(), table.codes.copy()
        self.cohort_of_row: IntArray = cohort_of_row
        for c in range(count):
            self._fit(c)

    @property
    def lasting(self) -> IndexArray:
        """The cohorts that have people."""
        return np.flatnonzero(self.sizes)

    def join(self, row: int, c: int) -> None:
        """Put a row into a cohort."""
        self.members[c].append(row)
        self.cohort_of_row[row] = c
        self._fit(c)

    def leave(self, row: int) -> None:
        """Take a row out of its cohort."""
        c = int(self.cohort_of_row[row])
        self.members[c].remove(row)
        self.cohort_of_row[row] = -1
        self._fit(c)

    def merge(self, c: int, other: int) -> None:
        """Put all rows of a cohort into another."""
        rows = self.members[c]
        self.members[other] += rows
        self.cohort_of_row[rows] = other
        self.members[c] = []
        self._fit(c)
        self._fit(other)

    def _fit(self, c: int) -> None:
        rows = self.members[c]
        self.sizes[c], self.losses[c] = len(rows), 0.0
        if not rows:
            return
        codes = self._codes[rows]
        self._low[c], self._high[c] = codes.min(axis=0), codes.max(axis=0)
        if len(rows) > 1:
            ordered = np.sort(codes, axis=0)
            self._rest_low[rows] = np.where(codes == ordered[0], ordered[1], ordered[0])
            self._rest_high[rows] = np.where(codes == ordered[-1], ordered[-2], ordered[-1])
        self.losses[c] = len(rows) * self._loss(self._low[[c]], self._high[[c]])[0]

    def _loss(self, low: IntArray, high: IntArray) -> FloatArray:
        total = np.zeros(np.broadcast_shapes(low.shape, high.shape)[:-1])
        for i, loss in enumerate(self._column_losses):
            total += loss(low[..., i], high[..., i])
        return total

    def loss_of(self, rows: IndexArray | Sequence[int]) -> float:
        """What rows would lose as one cohort, summed over them."""
        codes = self._codes[rows]
        return len(rows) * float(self._loss(codes.min(axis=0)[None], codes.max(axis=0)[None])[0]) if len(rows) else 0.0

    def added(self, rows: IndexArray, cohorts: IndexArray) -> FloatArray:
        """Loss that rows would add to cohorts, one of each, or several of either to one of the other."""
        codes, sizes = self._codes[rows], self.sizes[cohorts]
        joint = self._loss(np.minimum(self._low[cohorts], codes), np.maximum(self._high[cohorts], codes))
        return np.asarray((sizes + 1) * joint - self.losses[cohorts])

    def gained(self, rows: IndexArray) -> FloatArray:
        """Loss that the cohorts of rows would be rid of without them, one at a time."""
        cohorts = self.cohort_of_row[rows]
        rest = (self.sizes[cohorts] - 1) * self._loss(self._rest_low[rows], self._rest_high[rows])
        return np.asarray(self.losses[cohorts] - rest)

    def gained_by_exchange(self, row: int, others: IndexArray) -> FloatArray:
        """Loss saved if a row changed places with others, each of which is in another cohort."""
        own, theirs = int(self.cohort_of_row[row]), self.cohort_of_row[others]
        mine = self._loss(
            np.minimum(self._rest_low[row], self._codes[others]), np.maximum(self._rest_high[row], self._codes[others])
        )
        with_row = self._loss(
            np.minimum(self._rest_low[others], self._codes[row]), np.maximum(self._rest_high[others], self._codes[row])
        )
        before = self.losses[own] + self.losses[theirs]
        return np.asarray(before - self.sizes[own] * mine - self.sizes[theirs] * with_row)

    def added_by_merging(self, c: int, others: IndexArray) -> FloatArray:
        """Loss that one class for a cohort and another would add."""
        joint = self._loss(np.minimum(self._low[c], self._low[others]), np.maximum(self._high[c], self._high[others]))
        return np.asarray((self.sizes[c] + self.sizes[others]) * joint - self.losses[c] - self.losses[others])


def _tabulate(column: CodedColumn) -> Callable[[IntArray, IntArray], FloatArray]:
    """The loss of a column, looked up where its codes are few: a taxonomy is slow to climb for every box anew."""
    if column.size > TABULATED:
        return column.loss
    codes = np.arange(column.size)
    table = column.loss(*(each.ravel() for each in np.meshgrid(codes, codes, indexing="ij"))).reshape(column.size, -1)
    return lambda low, high: table[low, high]
