"""Individual ranking: every column is microaggregated on its own. Little is lost, and nothing is promised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, ReleasePlan, refuse_few_people
from fedanon.anonymizers.microaggregation.orders import cut_order, successive_groups
from fedanon.data.cells import Cells, Numbers
from fedanon.data.groups import Groups
from fedanon.data.spans import points
from fedanon.data.table import CodedColumn, Table
from fedanon.fields import parameter
from fedanon.release.recoding import ColumnRecoder, PerColumn
from fedanon.types import FloatArray, IndexArray, Rng


@ANONYMIZERS.register("individual_ranking")
@dataclass(frozen=True, kw_only=True)
class IndividualRanking(Anonymizer):
    """Each column is sorted on its own, and every k successive values publish their mean (sdcMicro's 'onedims').

    Every value is shared by k records, but the columns together are NOT k-anonymous, so the release claims nothing.
    """

    name = "individual_ranking"
    truthful = False
    numeric_only = True

    k: int = parameter(help="minimum number of records that share a value, column by column", at_least=2)
    optimal: bool = parameter(False, help="groups of k .. 2k - 1 values with least SSE instead of k successive ones")

    def _refuse_unfit(self, table: Table) -> None:
        super()._refuse_unfit(table)
        refuse_few_people(table, self.k)

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Every column, recoded on its own in a canonical order of the rows, which decides between equal values."""
        canonical = table.distinct.order
        rows = points(table)
        published = np.empty_like(rows)
        recoders: dict[str, ColumnRecoder] = {}
        for i, column in enumerate(table.columns):
            values = rows[canonical, i]
            groups = Groups.from_labels(self._column_groups(values))
            published[canonical, i] = groups.mean(values)[groups.labels]
            recoders[column.name] = _recoder(groups.maximum(values), groups.mean(values))
        classes = Groups.equal_rows(published)
        notes = ("Individual ranking is not k-anonymous over several columns: nothing is promised about this release.",)
        return ReleasePlan(classes, _cells(table, published[classes.first_rows]), PerColumn(recoders), notes)

    def _column_groups(self, values: FloatArray) -> IndexArray:
        """Group of every value of a column."""
        order = np.argsort(values, kind="stable")
        return cut_order(values[:, None], order, self.k) if self.optimal else successive_groups(order, self.k)


def _cells(table: Table, values: FloatArray) -> dict[str, Cells]:
    return {column.name: Numbers(values[:, i]) for i, column in enumerate(table.columns)}


def _recoder(upper: FloatArray, means: FloatArray) -> ColumnRecoder:
    """A new value takes the mean of the first group whose largest value is not below it."""
    order = np.argsort(means, kind="stable")
    upper, means = upper[order], means[order]

    def recode(new: CodedColumn) -> Cells:
        assert new.values is not None
        at = np.searchsorted(upper, np.nan_to_num(new.values, nan=np.inf))
        return Numbers(np.where(np.isnan(new.values), np.nan, means[np.minimum(at, len(means) - 1)]))

    return recode
