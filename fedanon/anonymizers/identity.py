"""No anonymisation: the baseline every comparison starts from."""

from __future__ import annotations

from dataclasses import dataclass

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, ReleasePlan, own_cells
from fedanon.data.table import Table
from fedanon.release.recoding import ColumnRecoder, PerColumn, cells_per_column
from fedanon.types import Rng


@ANONYMIZERS.register("identity")
@dataclass(frozen=True, kw_only=True)
class Identity(Anonymizer):
    """Publishes the quasi-identifiers as they are; claims nothing."""

    name = "identity"

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """One group a distinct row."""
        recoders: dict[str, ColumnRecoder] = {
            column.name: lambda new: own_cells(table, new) for column in table.columns
        }
        return ReleasePlan(table.distinct, cells_per_column(table, table.distinct, recoders), PerColumn(recoders))
