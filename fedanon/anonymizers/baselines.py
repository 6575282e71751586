"""Baselines that claim nothing: no anonymization at all, and numeric columns in bins of equal width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, ReleasePlan, own_cells
from fedanon.data.cells import Cells, Intervals
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn, Table
from fedanon.fields import parameter
from fedanon.release.recoding import ColumnRecoder, PerColumn, cells_per_column
from fedanon.types import Rng


@ANONYMIZERS.register("identity")
@dataclass(frozen=True, kw_only=True)
class Identity(Anonymizer):
    """Publishes the quasi-identifiers as they are; claims nothing."""

    name = "identity"

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """One group per distinct row."""
        recoders: dict[str, ColumnRecoder] = {
            column.name: lambda new: own_cells(table, new) for column in table.columns
        }
        return ReleasePlan(table.distinct, cells_per_column(table, table.distinct, recoders), PerColumn(recoders))


@ANONYMIZERS.register("fixed_interval")
@dataclass(frozen=True, kw_only=True)
class FixedInterval(Anonymizer):
    """Every numeric column in ``n_bins`` bins of equal width over its declared range; claims nothing.

    A value on the border of two bins belongs to the upper one. Categorical columns stay as they are.
    """

    name = "fixed_interval"

    n_bins: int = parameter(5, help="number of bins of every numeric column", at_least=1)

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Every numeric column, recoded on its own."""

        def recode(column: CodedColumn) -> Cells:
            return self._bins(column) if column.values is not None else own_cells(table, column)

        recoders = {column.name: recode for column in table.columns}
        notes = ("Fixed intervals are not k-anonymous: nothing is promised about this release.",)
        return ReleasePlan(
            table.distinct, cells_per_column(table, table.distinct, recoders), PerColumn(recoders), notes
        )

    def _bins(self, column: CodedColumn) -> Intervals:
        attribute, values = column.attribute, column.values
        assert isinstance(attribute, Numeric)
        assert values is not None
        edges = np.linspace(attribute.low, attribute.high, self.n_bins + 1)
        at = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, self.n_bins - 1)
        missing = np.isnan(values)
        return Intervals(np.where(missing, np.nan, edges[at]), np.where(missing, np.nan, edges[at + 1]))
