r"""Likely values: which value a published cell holds, as far as the release itself makes it likely.

A cell says that a value lies in it, not where; taking all its values for equally likely makes every country as common
as the largest. How common values are follows from all cells of a column: with :math:`n_c` rows in cell c, the shares

.. math:: p_v \leftarrow \frac1n \sum_c n_c \frac{p_v [v \in c]}{\sum_{u \in c} p_u}

converge to the likeliest ones (Turnbull 1976). Nothing but the release is used: whoever has it can do the same, so a
model that learns from likely values gives away no more than it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedanon.models.encoding import CategoricalColumn, Encoding, NumericColumn
from fedanon.release.release import Release
from fedanon.types import AnyArray, FeatureArray, FloatArray, IndexArray, Rng

#: rounds of the estimate; more would fit the accidents of few cells
STEPS = 40
#: rows that are thought to be spread evenly over all values
EVEN_ROWS = 0.5


@dataclass(frozen=True, eq=False)
class LikelyColumn:
    """One column of a release: its distinct cells, and the chance of every value in each of them.

    Parameters
    ----------
    column : how it becomes features.
    place : of its features.
    cells : first and last value of each distinct cell.
    cell_of_row : the distinct cell of every published row.
    """

    column: NumericColumn | CategoricalColumn
    place: slice
    cells: FloatArray
    cell_of_row: IndexArray

    @cached_property
    def chances(self) -> FloatArray:
        """Distinct cells x values; a row of it adds up to one."""
        covered = self.column.covered(self.cells)
        rows = np.bincount(self.cell_of_row, minlength=len(covered))
        size = covered.shape[1]
        shares = np.full(size, 1 / size)
        for _ in range(STEPS):
            found = shares * (covered.T @ (rows / (covered @ shares)))
            shares = (found + EVEN_ROWS / size) / (found.sum() + EVEN_ROWS)
        chances = covered * shares
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def draw(self, rng: Rng) -> FeatureArray:
        """Features of one value drawn for every row."""
        # the chances of all cells in one ascending row: those of cell c lie between c and c + 1
        laid_out = (np.cumsum(self.chances, axis=1) + np.arange(len(self.cells))[:, None]).ravel()
        at = np.searchsorted(laid_out, self.cell_of_row + rng.random(len(self.cell_of_row)), side="right")
        value = np.minimum(at - self.cell_of_row * self.chances.shape[1], self.chances.shape[1] - 1)
        return self.column.features_of(value, self.cells[self.cell_of_row], rng.random(len(value)))

    def expected(self) -> FeatureArray:
        """Mean features of every row."""
        mean = np.zeros((len(self.cells), self.place.stop - self.place.start), dtype=np.float32)
        for value in np.flatnonzero(self.chances.any(axis=0)):
            everywhere = np.full(len(self.cells), value)
            mean += self.chances[:, [value]] * self.column.features_of(everywhere, self.cells, 0.5)
        return mean[self.cell_of_row]


class LikelyValues:
    """The published rows of a release as features, by the values that the release makes likely.

    Parameters
    ----------
    release : the published rows.
    encoding : how columns become features.
    """

    def __init__(self, release: Release, encoding: Encoding) -> None:
        self.width = encoding.width
        self.columns = []
        for column, place, cells, rows in encoding.placed_cells(release):
            distinct, of_cell = np.unique(column.ends(cells), axis=0, return_inverse=True)
            self.columns.append(LikelyColumn(column, place, distinct, of_cell.ravel()[rows]))

    def draw(self, rng: Rng) -> FeatureArray:
        """Every row drawn anew."""
        return self._joined([column.draw(rng) for column in self.columns])

    def expected(self) -> FeatureArray:
        """The mean of what would be drawn."""
        return self._joined([column.expected() for column in self.columns])

    def _joined(self, parts: list[AnyArray]) -> FeatureArray:
        return np.concatenate(parts, axis=1) if parts else np.empty((0, self.width), dtype=np.float32)
