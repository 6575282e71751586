"""What the perturbative methods for numeric columns share: which columns, the restrictions, and reverse mapping.

A method is a pure function of matrices and a thin dataclass that calls it in :meth:`NumericPerturbation.perturb`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Numbers, is_suppressed
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import listed, parameter
from fedanon.sdc.methods.base import Columns, Perturbative, numbers
from fedanon.sdc.methods.projections import regression, standardized
from fedanon.sdc.methods.ranks import reverse_map
from fedanon.types import FloatArray, Rng

WHAT = "numeric quasi-identifiers"


@dataclass(frozen=True, kw_only=True)
class NumericPerturbation(Perturbative):
    """Base of the methods that change numbers; a method implements :meth:`perturb`.

    The restrictions follow the method, reverse mapping follows the restrictions (Morais 2022, tables 34-39).
    """

    keep_zeros: bool = parameter(False, help="values that are 0 in the original stay 0")
    non_negative: bool = parameter(False, help="negative results take their absolute value")
    reverse_map: bool = parameter(False, help="publish, for each result, the original value of the same rank")

    @abstractmethod
    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """The new values of ``data.x``, before restrictions."""

    def rows_needed(self, p: int, q: int) -> int:
        """Fewest rows for ``p`` columns to change and ``q`` given ones."""
        return 2

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """The chosen columns as numbers, perturbed, restricted and perhaps mapped back."""
        data = self._select(table, current)
        data.refuse_few_rows(self.rows_needed(data.x.shape[1], data.s.shape[1]))
        y = self.perturb(data, rng)
        _refuse_overflow(data, y)
        if self.keep_zeros or self.non_negative or self.reverse_map:
            y = self._restricted(original_numbers(table, data.names), y, data, rng)
        return {name: Numbers(np.ascontiguousarray(y[:, i])) for i, name in enumerate(data.names)}

    def given_names(self, table: Table, names: list[str]) -> list[str]:
        """The columns a method may look at besides those it changes."""
        return []

    def _select(self, table: Table, current: Columns) -> Selection:
        names = self.chosen(table, numeric_quasi_identifiers(table), WHAT)
        given = self.given_names(table, names)
        attributes = {c.name: c.attribute for c in table.columns if isinstance(c.attribute, Numeric)}
        x, s = known_numbers(table, current, names), known_numbers(table, current, given)
        return Selection(self.name, tuple(attributes[name] for name in names), x, tuple(given), s)

    def _restricted(self, original: FloatArray, y: FloatArray, data: Selection, rng: Rng) -> FloatArray:
        zeros = (original == 0) & self.keep_zeros
        if self.non_negative:
            y = np.abs(y)
        y = np.where(zeros, 0.0, y)
        if not self.reverse_map:
            return y
        if self.non_negative:
            _refuse_negative_originals(data, original)
        return _mapped_back(original, y, zeros, rng)


@dataclass(frozen=True, kw_only=True)
class ConditionalPerturbation(NumericPerturbation):
    """Base of the methods that draw the columns X anew from what other columns S, which stay, say about them."""

    given: str = parameter("", help="numeric quasi-identifiers that stay and explain the others; all others if empty")

    def rows_needed(self, p: int, q: int) -> int:
        """With fewer, the given columns explain the others by chance, and these would be published as they are."""
        return 1 + p + q

    def given_names(self, table: Table, names: list[str]) -> list[str]:
        """The columns asked for, or all numeric ones that are not changed."""
        numeric = numeric_quasi_identifiers(table)
        wanted = listed(self.given)
        unfit = [name for name in wanted if name not in numeric or name in names]
        if unfit:
            raise ConfigError(f"The given columns of {self.name!r} are {WHAT} that stay. Not so: {', '.join(unfit)}.")
        return wanted or [name for name in numeric if name not in names]


def _mapped_back(original: FloatArray, y: FloatArray, kept: NDArray[np.bool_], rng: Rng) -> FloatArray:
    """Reverse mapping among the cells that need not stay as they are."""
    mapped = y.copy()
    for i in range(y.shape[1]):
        free = ~kept[:, i]
        mapped[free, i] = reverse_map(original[free, i], y[free, i], rng)
    return mapped


def _refuse_overflow(data: Selection, y: FloatArray) -> None:
    wrong = ~np.isfinite(y)
    if wrong.any():
        name = data.names[int(wrong.any(axis=0).argmax())]
        raise InfeasibleError(f"The method {data.method!r} leads beyond the largest numbers in the column {name!r}.")


def _refuse_negative_originals(data: Selection, original: FloatArray) -> None:
    for name, column in zip(data.names, original.T, strict=True):
        count = int((column < 0).sum())
        if count:
            raise ConfigError(
                f"The column {name!r} has {count} negative values, which reverse_map would publish in spite of "
                "non_negative; choose one of them."
            )


# ---- What a numeric method works on --------------------------------------------------------------

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
