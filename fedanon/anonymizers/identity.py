"""No anonymisation: the baseline every comparison starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, Draft, Rng
from fedanon.anonymizers.publishing import smallest_cells
from fedanon.data.cells import Cells
from fedanon.data.recoding import PerColumn, cells_per_column
from fedanon.data.table import CodedColumn, Table


@ANONYMIZERS.register("identity")
@dataclass(frozen=True, kw_only=True)
class Identity(Anonymizer):
    """Publishes the quasi-identifiers as they are; claims nothing."""

    name = "identity"

    def draft(self, table: Table, rng: Rng) -> Draft:
        """One group a distinct row."""

        def itself(column: CodedColumn) -> Cells:
            codes = np.arange(column.size, dtype=np.int32)
            return smallest_cells(table, column, codes, codes)

        recoders = {column.name: itself for column in table.columns}
        return Draft(table.distinct, cells_per_column(table, table.distinct, recoders), PerColumn(recoders))
