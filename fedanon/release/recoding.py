"""The two ways a generalization is carried over to new rows: by nearest group, or column by column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedanon.data.cells import Cells, Nodes
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import MISSING
from fedanon.data.rules import extend_tree
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

        cells, table = _in_common_trees(release, table)
        bounds = [cell_bounds(cells[c.name], c.attribute) for c in table.columns]
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


def _in_common_trees(release: Release, table: Table) -> tuple[Mapping[str, Cells], Table]:
    """Cells and rows by the same taxonomies, where those of a rule hold the codes of each side alone."""
    cells, columns, codes = dict(release.cells), list(table.columns), table.codes.copy()
    for i, column in enumerate(columns):
        rule, shown = getattr(column.attribute, "rule", None), cells[column.name]
        if column.values is not None or rule is None or not isinstance(shown, Nodes):
            continue
        if shown.hierarchy is column.hierarchy:
            continue
        tree = extend_tree(rule, column.hierarchy, shown.hierarchy.labels, name=column.name)
        tree = tree.with_missing() if MISSING in shown.hierarchy.codes else tree
        assert isinstance(column.own_cells, Nodes)
        codes[:, i] = column.own_cells.placed_in(tree).nodes[codes[:, i]]
        columns[i] = replace(column, attribute=replace(column.attribute, hierarchy=tree))
        cells[column.name] = shown.placed_in(tree)
    return cells, replace(table, columns=tuple(columns), codes=codes)
