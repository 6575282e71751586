"""What the perturbative methods share: they change the cells of some columns, row by row, and claim nothing.

A method sees *columns*: one cell a row for every quasi-identifier, as typed arrays. It returns those it changed. A
pipeline (:mod:`~fedanon.sdc.methods.pipeline`) hands the columns of one step on to the next.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedanon.anonymizers.base import Anonymizer, Draft, own_cells
from fedanon.data.cells import Cells, Nodes
from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import listed, parameter
from fedanon.release.recoding import PerColumn
from fedanon.types import FloatArray, Rng

#: one cell a row, for every quasi-identifier
Columns = Mapping[str, Cells]

NO_CLAIM = "Values were changed, not generalised: nothing is promised about this release; see its measured risks."


@dataclass(frozen=True, kw_only=True)
class Perturbative(Anonymizer):
    """Base of the methods that change values; a method implements :meth:`change`."""

    truthful = False
    row_order_matters = True

    columns: str = parameter("", help="quasi-identifiers to change, separated by commas; all that fit if empty")

    @abstractmethod
    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """The columns that differ from ``current``, which earlier steps may have changed; ``table`` is the original."""

    def draft(self, table: Table, rng: Rng) -> Draft:
        """The table's own cells, changed once."""
        current = own_columns(table)
        return draft_of(table, {**current, **self.change(table, current, rng)}, (NO_CLAIM,))

    def chosen(self, table: Table, fitting: list[str], what: str) -> list[str]:
        """The columns to change: those asked for, each of which must fit, or all that do."""
        wanted = list(dict.fromkeys(listed(self.columns))) or fitting
        unfit = [name for name in wanted if name not in fitting]
        if unfit:
            raise ConfigError(f"The method {self.name!r} changes {what} only. Not so: {', '.join(unfit)}.")
        if not wanted:
            raise ConfigError(f"The method {self.name!r} changes {what}; the table has none.")
        return wanted


def own_columns(table: Table) -> dict[str, Cells]:
    """The quasi-identifiers as they are, one cell a row."""
    return {c.name: own_cells(table, c).select(table.codes[:, i]) for i, c in enumerate(table.columns)}


def draft_of(table: Table, columns: Columns, notes: tuple[str, ...]) -> Draft:
    """Rows published alike form a group; new rows are left as they are."""
    groups = Groups.equal_rows(np.column_stack([columns[c.name].keys() for c in table.columns]))
    cells = {name: column.select(groups.first_rows) for name, column in columns.items()}
    return Draft(groups, cells, PerColumn({c.name: lambda new: own_cells(table, new) for c in table.columns}), notes)


def categorical_names(table: Table) -> list[str]:
    """The categorical quasi-identifiers."""
    return [c.name for c in table.columns if not isinstance(c.attribute, Numeric)]


def numbers(columns: Columns, names: list[str]) -> FloatArray:
    """Numeric columns as a matrix, one row a record; refuses missing values and suppressed cells."""
    matrix = np.column_stack([_numbers_of(columns[name], name) for name in names]) if names else None
    return np.empty((len(next(iter(columns.values()))), 0)) if matrix is None else matrix


def _numbers_of(cells: Cells, name: str) -> FloatArray:
    if isinstance(cells, Nodes):
        raise ConfigError(f"The column {name!r} does not hold numbers.")
    values = cells.midpoints()
    if np.isnan(values).any():
        count = int(np.isnan(values).sum())
        raise ConfigError(f"The column {name!r} has {count} missing values; fill or drop them first.")
    return values


# ---- What the methods for key columns share ------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class KeyMethod(Perturbative):
    """Base of the methods for key columns; they add :meth:`remarks` to the notes of a release."""

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """What a reader of the release has to know about this step; no cell is quoted."""
        return ()

    def draft(self, table: Table, rng: Rng) -> Draft:
        """The table's own cells, changed once, with remarks."""
        before = own_columns(table)
        after = {**before, **self.change(table, before, rng)}
        silent = self.truthful or self.claim() is not None
        notes = (*self.remarks(table, before, after), *(() if silent else (NO_CLAIM,)))
        return replace(draft_of(table, after, ()), notes=notes)
