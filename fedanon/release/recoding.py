"""The two ways a generalization is carried over to new rows: by nearest group, or column by column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.spans import cell_bounds, points, span_table
from fedanon.data.table import CodedColumn, Table
from fedanon.release.release import Release
from fedanon.types import IntArray

ColumnRecoder = Callable[[CodedColumn], Cells]


@dataclass(frozen=True)
class NearestGroup:
    """A new row takes the cells of the group that has to grow least, by NCP, to hold it."""

    columnwise: ClassVar[bool] = False

    def apply(self, release: Release, table: Table) -> tuple[IntArray, Mapping[str, Cells]]:
        """Group of every new row; the cells are those of the release."""
        from fedanon.kernels.spans import nearest_extent

        bounds = [cell_bounds(release.cells[c.name], c.attribute) for c in table.columns]
        low = np.column_stack([low for low, _ in bounds])
        high = np.column_stack([high for _, high in bounds])
        distinct = table.distinct
        rows = points(table)[distinct.first_rows]
        nearest = nearest_extent(span_table(table.columns), rows, low, high)
        return nearest[distinct.labels], release.cells


@dataclass(frozen=True)
class PerColumn:
    """Every column is mapped alone: ``recoders[name]`` gives a cell for each of its codes."""

    columnwise: ClassVar[bool] = True

    recoders: Mapping[str, ColumnRecoder]

    def apply(self, release: Release, table: Table) -> tuple[IntArray, Mapping[str, Cells]]:
        """One group per distinct row, with the cells of its values."""
        return table.distinct.labels, cells_per_column(table, table.distinct, self.recoders)


def cells_per_column(table: Table, groups: Groups, recoders: Mapping[str, ColumnRecoder]) -> dict[str, Cells]:
    """Cells of groups of equal rows, each column recoded alone."""
    codes = table.codes[groups.first_rows]
    return {c.name: recoders[c.name](c).select(codes[:, i]) for i, c in enumerate(table.columns)}
