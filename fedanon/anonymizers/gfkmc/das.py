"""DAS, dynamic anonymization by separatrices: numeric columns are cut at percentiles, their number by the elbow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, ReleasePlan, own_cells
from fedanon.data.cells import Cells, Numbers
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn, Table
from fedanon.fields import parameter
from fedanon.release.recoding import ColumnRecoder, PerColumn, cells_per_column
from fedanon.types import FloatArray, IndexArray, Rng


@dataclass(frozen=True, eq=False)
class Separatrices:
    """The groups of one column: upper ends (values of the data) and means."""

    upper: FloatArray
    means: FloatArray

    def group_of(self, values: FloatArray) -> IndexArray:
        """Group of each value: the first whose upper end is not below it."""
        return np.minimum(np.searchsorted(self.upper, values, side="left"), len(self.upper) - 1)


@ANONYMIZERS.register("das")
@dataclass(frozen=True, kw_only=True)
class Das(Anonymizer):
    """Algorithm 4.1 of the thesis: each numeric column is cut at percentiles, each group replaced by its mean.

    The number of groups is the knee (Kneedle) of the exact 1-D k-means distortion of the distinct values. Columns are
    treated one at a time, so the release is NOT k-anonymous and claims nothing. Categorical columns stay as they are.
    """

    name = "das"
    truthful = False

    n_bins: int | None = parameter(None, help="number of groups per column; by the elbow if not given", at_least=1)
    truncate: bool = parameter(False, help="whole-number columns publish the truncated mean, as the thesis does")

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Every numeric column, recoded on its own."""
        recoders = {c.name: self._recoder(table, i, c) for i, c in enumerate(table.columns)}
        notes = ("DAS alone is not k-anonymous: nothing is promised about this release.",)
        return ReleasePlan(
            table.distinct, cells_per_column(table, table.distinct, recoders), PerColumn(recoders), notes
        )

    def _recoder(self, table: Table, index: int, column: CodedColumn) -> ColumnRecoder:
        attribute = column.attribute
        if not isinstance(attribute, Numeric):
            return lambda new: own_cells(table, new)
        groups = separatrices(column_values(table, index), self.n_bins)
        means = np.trunc(groups.means) if self.truncate and attribute.integer else groups.means

        def recode(new: CodedColumn) -> Cells:
            assert new.values is not None
            known = ~np.isnan(new.values)
            values = np.full(new.size, np.nan)
            values[known] = means[groups.group_of(new.values[known])]
            return Numbers(values)

        return recode


def column_values(table: Table, index: int) -> FloatArray:
    """The known values of a numeric column, row by row."""
    values = table.columns[index].values
    assert values is not None
    rows = values[table.codes[:, index]]
    return rows[~np.isnan(rows)]


def separatrices(values: FloatArray, n_bins: int | None = None) -> Separatrices:
    """Groups of a column at its percentiles 100 i / n_bins ('closest observation'); ties stay together."""
    ordered = np.sort(values)
    if len(ordered) == 0:
        return Separatrices(np.zeros(1), np.full(1, np.nan))
    n_bins = n_bins or elbow(np.unique(ordered))
    at = np.percentile(ordered, 100 * np.arange(1, n_bins + 1) / n_bins, method="closest_observation")
    upper = np.unique(at)  # tied separatrices make empty groups, which are skipped
    ends = np.searchsorted(ordered, upper, side="right")
    starts = np.concatenate([[0], ends[:-1]])
    return Separatrices(upper, np.add.reduceat(ordered, starts) / (ends - starts))


def elbow(distinct: FloatArray) -> int:
    """Knee of the k-means distortion of m sorted distinct values over K = 2 .. m - 1 (Kneedle, Satopaa et al. 2011).

    The curve is convex, so Kneedle's difference curve is concave and its knee is where one more group gains less than
    the mean gain; the search stops there, which cannot change the answer.
    """
    from fedanon.anonymizers.gfkmc._kernel import distortions

    m = len(distinct)
    if m <= 4:
        return min(m, 2)
    start = distortions(distinct, np.inf)[1]
    end = np.diff(distinct).min() ** 2 / 2  # m - 1 groups: only the two nearest values share one
    curve = distortions(distinct, (start - end) / (m - 3))[1:]
    difference = (start - curve) / ((start - end) or 1.0) - np.arange(len(curve)) / (m - 3)
    return int(np.argmax(difference)) + 2
