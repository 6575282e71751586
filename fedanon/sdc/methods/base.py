"""What all methods share: they change the cells of some columns, row by row, and claim nothing.

A method sees *columns*: one cell per row for every quasi-identifier, as typed arrays. It returns the columns it
changed. A pipeline (:mod:`~fedanon.sdc.methods.pipeline`) passes the columns of one step on to the next. Methods for
numbers build on :mod:`~fedanon.sdc.methods.numeric`, methods for key columns on :mod:`~fedanon.sdc.methods.keys`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedanon.anonymizers.base import Anonymizer, ReleasePlan, own_cells
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import listed, parameter
from fedanon.release.recoding import PerColumn
from fedanon.sdc.variables import Part
from fedanon.types import Rng

#: one cell per row, for every quasi-identifier
Columns = Mapping[str, Cells]
#: what a method found on the way and a manifest keeps; no cell is in it
Details = dict[str, Any]

NO_CLAIM = "Values were changed, not generalized: nothing is promised about this release; see its measured risks."


@dataclass(frozen=True, kw_only=True)
class Perturbative(Anonymizer):
    """Base of the methods that change values; a method implements :meth:`change`."""

    truthful = False
    row_order_matters = True
    #: which of the three lists of columns a step of this method works on, unless it names columns
    takes: ClassVar[Part] = "numbers"

    columns: str = parameter("", help="quasi-identifiers to change, separated by commas; all that fit if empty")

    @abstractmethod
    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Return the columns that differ from ``current``, which earlier steps may have changed.

        ``table`` is the original.
        """

    def change_with_details(self, table: Table, current: Columns, rng: Rng) -> tuple[Columns, Details]:
        """Return what :meth:`change` returns, and what is worth keeping of how it came about."""
        return self.change(table, current, rng), {}

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Change the table's own cells once."""
        current = own_columns(table)
        return plan_of(table, {**current, **self.change(table, current, rng)}, (NO_CLAIM,))

    def chosen(self, table: Table, fitting: list[str], what: str) -> list[str]:
        """Return the columns to change: the requested ones, all of which must fit, or every column that fits."""
        wanted = list(dict.fromkeys(listed(self.columns))) or fitting
        unfit = [name for name in wanted if name not in fitting]
        if unfit:
            raise ConfigError(f"The method {self.name!r} changes {what} only. It cannot change: {', '.join(unfit)}.")
        if not wanted:
            raise ConfigError(f"The method {self.name!r} changes {what}; the table has none.")
        return wanted


def own_columns(table: Table) -> dict[str, Cells]:
    """Return the quasi-identifiers unchanged, one cell per row."""
    return {c.name: own_cells(table, c).select(table.codes[:, i]) for i, c in enumerate(table.columns)}


def plan_of(table: Table, columns: Columns, notes: tuple[str, ...]) -> ReleasePlan:
    """Group the rows that are published alike; new rows are published unchanged."""
    groups = Groups.equal_rows(np.column_stack([columns[c.name].keys() for c in table.columns]))
    cells = {name: column.select(groups.first_rows) for name, column in columns.items()}
    return ReleasePlan(
        groups, cells, PerColumn({c.name: lambda new: own_cells(table, new) for c in table.columns}), notes
    )


def categorical_names(table: Table) -> list[str]:
    """Names of the categorical quasi-identifiers."""
    return [c.name for c in table.columns if not isinstance(c.attribute, Numeric)]
