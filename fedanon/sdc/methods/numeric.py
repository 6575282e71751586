"""What the methods for numeric columns share: the choice of columns, restrictions, reverse mapping and checks.

A method is a pure function of matrices and a thin dataclass that calls it in :meth:`NumericPerturbation.perturb`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fedanon.data.cells import Cells, Nodes, Numbers, is_suppressed
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import listed, parameter
from fedanon.sdc.methods.base import Columns, Perturbative
from fedanon.sdc.methods.projections import regression, standardized
from fedanon.types import BoolArray, FloatArray, IndexArray, Rng

WHAT = "numeric quasi-identifiers"
#: share of a column's spread the given columns may leave unexplained before it counts as determined by them
DETERMINED = 1e-9


# ---- bases of the methods ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NumericPerturbation(Perturbative):
    """Base of the methods that change numbers; a method implements :meth:`perturb`.

    Restrictions are applied after the method, reverse mapping after the restrictions (Morais 2022, tables 34-39).
    """

    keep_zeros: bool = parameter(False, help="values that are 0 in the original stay 0")
    non_negative: bool = parameter(False, help="negative results take their absolute value")
    reverse_map: bool = parameter(False, help="publish, for each result, the original value of the same rank")

    @abstractmethod
    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Return the new values of ``data.x``, before restrictions."""

    def rows_needed(self, p: int, q: int) -> int:
        """Return the fewest rows that suffice for ``p`` columns to change and ``q`` given ones."""
        return 2

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Perturb the chosen columns, restrict the results and, if asked, map them back."""
        data = self._select(table, current)
        data.refuse_few_rows(self.rows_needed(data.x.shape[1], data.s.shape[1]))
        y = self.perturb(data, rng)
        _refuse_overflow(data, y)
        if self.keep_zeros or self.non_negative or self.reverse_map:
            y = self._restricted(original_numbers(table, data.names), y, data, rng)
        return {name: Numbers(np.ascontiguousarray(y[:, i])) for i, name in enumerate(data.names)}

    def given_names(self, table: Table, names: list[str]) -> list[str]:
        """Names of the columns a method may look at besides those it changes."""
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
        """With fewer rows the given columns would explain the others by chance, and X would be published unchanged."""
        return 1 + p + q

    def given_names(self, table: Table, names: list[str]) -> list[str]:
        """Names of the requested columns, or of all numeric ones that are not changed."""
        numeric = numeric_quasi_identifiers(table)
        wanted = listed(self.given)
        unfit = [name for name in wanted if name not in numeric or name in names]
        if unfit:
            raise ConfigError(
                f"The given columns of {self.name!r} must be {WHAT} that stay unchanged. "
                f"These are not: {', '.join(unfit)}."
            )
        return wanted or [name for name in numeric if name not in names]


def _refuse_overflow(data: Selection, y: FloatArray) -> None:
    wrong = ~np.isfinite(y)
    if wrong.any():
        name = data.names[int(wrong.any(axis=0).argmax())]
        raise InfeasibleError(f"The method {data.method!r} goes beyond the largest numbers in the column {name!r}.")


def _refuse_negative_originals(data: Selection, original: FloatArray) -> None:
    for name, column in zip(data.names, original.T, strict=True):
        count = int((column < 0).sum())
        if count:
            raise ConfigError(
                f"The column {name!r} has {count} negative values, which reverse_map would publish in spite of "
                "non_negative; choose one of them."
            )


# ---- what a method works on ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Selection:
    """Numeric columns as matrices, one row per record.

    Parameters
    ----------
    method : its name, for messages.
    attributes : declarations of the columns to change.
    x : their values.
    given : names of the given columns.
    s : their values; a matrix of width 0 if there are none.
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
        """Raise InfeasibleError if there are too few rows for the number of columns."""
        if len(self.x) < needed:
            p, q = len(self.names), len(self.given)
            raise InfeasibleError(
                f"The method {self.method!r} needs at least {needed} rows to change {p} columns, given {q}. "
                f"The table has {len(self.x)}."
            )

    def refuse_constant(self) -> None:
        """Raise InfeasibleError if a column, to change or given, has only one value."""
        both = np.column_stack([self.x, self.s])
        constant = [n for n, c in zip((*self.names, *self.given), both.T, strict=True) if c.min() == c.max()]
        if constant:
            raise InfeasibleError(f"The method {self.method!r} takes no constant columns: {', '.join(constant)}.")

    def refuse_determined(self) -> None:
        """Raise InfeasibleError if a column follows from the given ones: it would be published unchanged."""
        scores = standardized(self.x).scores
        left = np.square(regression(scores, self.s).residuals).sum(axis=0)
        total = np.square(scores).sum(axis=0)
        self.refuse_unchanged((total > 0) & (left <= DETERMINED**2 * total))

    def refuse_unchanged(self, determined: BoolArray) -> None:
        """Raise InfeasibleError if the mask marks any column as following from the given ones."""
        names = [name for name, bad in zip(self.names, determined, strict=True) if bad]
        if names:
            raise InfeasibleError(
                f"The method {self.method!r} would publish {', '.join(names)} unchanged: it follows from the "
                f"given columns {', '.join(self.given)}."
            )


def original_numbers(table: Table, names: tuple[str, ...]) -> FloatArray:
    """Return the table's own values of numeric columns, one row per record; rejects missing ones."""
    return np.column_stack([_original(table, name) for name in names])


def _original(table: Table, name: str) -> FloatArray:
    place = [c.name for c in table.columns].index(name)
    column = table.columns[place]
    assert column.values is not None
    return _complete(column.values[table.codes[:, place]], name)


def known_numbers(table: Table, current: Columns, names: list[str]) -> FloatArray:
    """Return numeric columns as a matrix; rejects missing and suppressed cells, whole ranges included."""
    for column in table.columns:
        if column.name in names and isinstance(column.attribute, Numeric):
            count = int(is_suppressed(current[column.name], column.attribute).sum())
            if count:
                what = "missing or suppressed values" if column.has_missing else "suppressed values"
                raise ConfigError(f"The column {column.name!r} has {count} {what}; fill or drop them first.")
    return np.column_stack([_numbers_of(current[name], name) for name in names]) if names else np.empty((len(table), 0))


def _numbers_of(cells: Cells, name: str) -> FloatArray:
    if isinstance(cells, Nodes):
        raise ConfigError(f"The column {name!r} does not hold numbers.")
    return _complete(cells.midpoints(), name)


def _complete(values: FloatArray, name: str) -> FloatArray:
    """Return the values; rejects a column that lacks any."""
    count = int(np.isnan(values).sum())
    if count:
        raise ConfigError(f"The column {name!r} has {count} missing values; fill or drop them first.")
    return values


# ---- reverse mapping -----------------------------------------------------------------------------


def order_with_ties_drawn(values: FloatArray, rng: Rng) -> IndexArray:
    """Positions in ascending order of the values; equal ones in random order."""
    return np.asarray(np.lexsort((rng.random(len(values)), values)), dtype=np.int64)


def reverse_map(x: FloatArray, y: FloatArray, rng: Rng) -> FloatArray:
    """z_i = the value of ``x`` that has the rank of y_i (Muralidhar, Sarathy & Domingo-Ferrer 2014).

    Equal values of ``y`` are ranked at random: ranked by ``x``, groups that a method published alike would come apart
    into their originals.
    """
    z = np.empty_like(x)
    z[order_with_ties_drawn(y, rng)] = np.sort(x)
    return z


def _mapped_back(original: FloatArray, y: FloatArray, kept: BoolArray, rng: Rng) -> FloatArray:
    """Reverse mapping among the cells that need not stay as they are."""
    mapped = y.copy()
    for i in range(y.shape[1]):
        free = ~kept[:, i]
        mapped[free, i] = reverse_map(original[free, i], y[free, i], rng)
    return mapped
