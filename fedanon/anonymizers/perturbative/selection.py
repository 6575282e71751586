"""What a numeric method works on: the columns to change, the columns given, and what may be wrong with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.perturbative.base import Columns, numbers
from fedanon.anonymizers.perturbative.projections import regression, standardized
from fedanon.data.cells import is_suppressed
from fedanon.data.hierarchy import FloatArray
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError

#: share of a column's spread the given columns may leave unexplained before it counts as determined by them
DETERMINED = 1e-9


@dataclass(frozen=True, eq=False)
class Selection:
    """Numeric columns as matrices, one row a record.

    Parameters
    ----------
    method : its name, for messages.
    attributes : declarations of the columns to change.
    x : their values.
    given : names of the columns that are given.
    s : their values; no column is a matrix of width 0.
    """

    method: str
    attributes: tuple[Numeric, ...]
    x: FloatArray
    given: tuple[str, ...]
    s: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to change."""
        return tuple(a.name for a in self.attributes)

    def refuse_few_rows(self, needed: int) -> None:
        """InfeasibleError where there are too few rows for the number of columns."""
        if len(self.x) < needed:
            p, q = len(self.names), len(self.given)
            raise InfeasibleError(
                f"The method {self.method!r} needs at least {needed} rows to change {p} columns, given {q}. "
                f"The table has {len(self.x)}."
            )

    def refuse_constant(self) -> None:
        """InfeasibleError where a column, to change or given, has one value only."""
        both = np.column_stack([self.x, self.s])
        constant = [n for n, c in zip((*self.names, *self.given), both.T, strict=True) if c.min() == c.max()]
        if constant:
            raise InfeasibleError(f"The method {self.method!r} takes no constant columns: {', '.join(constant)}.")

    def refuse_determined(self) -> None:
        """InfeasibleError where a column follows from the given ones: it would be published as it is."""
        scores = standardized(self.x).scores
        left = np.square(regression(scores, self.s).residuals).sum(axis=0)
        total = np.square(scores).sum(axis=0)
        self.refuse_unchanged((total > 0) & (left <= DETERMINED**2 * total))

    def refuse_unchanged(self, determined: NDArray[np.bool_]) -> None:
        """The error for the columns of a mask that follow from the given ones."""
        names = [name for name, bad in zip(self.names, determined, strict=True) if bad]
        if names:
            raise InfeasibleError(
                f"The method {self.method!r} would publish {', '.join(names)} unchanged: it follows from the "
                f"given columns {', '.join(self.given)}."
            )


def original_numbers(table: Table, names: tuple[str, ...]) -> FloatArray:
    """The table's own values of numeric columns, one row a record; refuses missing ones."""
    return np.column_stack([_original(table, name) for name in names])


def _original(table: Table, name: str) -> FloatArray:
    place = [c.name for c in table.columns].index(name)
    column = table.columns[place]
    assert column.values is not None
    values = column.values[table.codes[:, place]]
    count = int(np.isnan(values).sum())
    if count:
        raise ConfigError(f"The column {name!r} has {count} missing values; fill or drop them first.")
    return values


def known_numbers(table: Table, current: Columns, names: list[str]) -> FloatArray:
    """Numeric columns as a matrix; refuses missing and suppressed cells, also those that show the whole range."""
    for column in table.columns:
        if column.name in names and isinstance(column.attribute, Numeric):
            count = int(is_suppressed(current[column.name], column.attribute).sum())
            if count:
                what = "missing or suppressed values" if column.has_missing else "suppressed values"
                raise ConfigError(f"The column {column.name!r} has {count} {what}; fill or drop them first.")
    return numbers(current, names)
