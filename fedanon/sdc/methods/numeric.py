"""What the methods for numeric columns share: the choice of columns, missing values, restrictions, reverse mapping.

A method is a pure function of matrices and a thin dataclass that calls it in :meth:`NumericPerturbation.perturb`. It
never sees a missing value (:mod:`~fedanon.sdc.methods.missing`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedanon.data.cells import Cells, Nodes, is_suppressed
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import parameter
from fedanon.sdc.methods.base import Columns, Perturbative
from fedanon.sdc.methods.missing import completed, with_numbers
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

    #: whether every column is changed by itself, from its own values alone
    columnwise: ClassVar[bool] = False

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
        """Perturb the chosen columns, restrict the results and, if asked, map them back; what is missing stays."""
        data = self._select(table, current)
        y = self._columnwise(data, rng) if self.columnwise else self._jointly(data, rng)
        _refuse_overflow(data, y)
        if self.keep_zeros or self.non_negative or self.reverse_map:
            y = self._restricted(original_numbers(table, data.names), y, data, rng)
        return {name: with_numbers(current[name], y[:, i]) for i, name in enumerate(data.names)}

    def _jointly(self, data: Selection, rng: Rng) -> FloatArray:
        """Perturb all columns at once; a record that lacks some of them borrows these while it is computed."""
        rows, filled = completed(np.column_stack([data.x, data.s]), data.x.shape[1], rng)
        y = np.full_like(data.x, np.nan)
        y[rows] = self._perturbed(data.of(*np.split(filled, [data.x.shape[1]], axis=1)), rng)
        return np.where(np.isnan(data.x), np.nan, y)

    def _columnwise(self, data: Selection, rng: Rng) -> FloatArray:
        """Perturb every column by itself, the records that have a value in it."""
        known = ~np.isnan(data.x)
        if known.all():
            return self._perturbed(data, rng)
        y = np.full_like(data.x, np.nan)
        for i in range(data.x.shape[1]):
            one = replace(data, attributes=data.attributes[i : i + 1], x=data.x[known[:, i], i : i + 1])
            y[known[:, i], i : i + 1] = self._perturbed(replace(one, s=one.s[known[:, i]]), rng)
        return y

    def _perturbed(self, data: Selection, rng: Rng) -> FloatArray:
        data.refuse_few_rows(self.rows_needed(data.x.shape[1], data.s.shape[1]))
        return self.perturb(data, rng)

    def explained_by(self, table: Table, current: Columns, names: list[str]) -> tuple[tuple[str, ...], FloatArray]:
        """Return other columns a method may look at, as a matrix, with the name of the column each comes from."""
        return (), np.empty((len(table), 0))

    def _select(self, table: Table, current: Columns) -> Selection:
        names = self.chosen(table, numeric_quasi_identifiers(table), WHAT)
        given, s = self.explained_by(table, current, names)
        attributes = {c.name: c.attribute for c in table.columns if isinstance(c.attribute, Numeric)}
        x = known_numbers(table, current, names)
        return Selection(self.name, tuple(attributes[name] for name in names), x, given, s)

    def _restricted(self, original: FloatArray, y: FloatArray, data: Selection, rng: Rng) -> FloatArray:
        silent = np.isnan(y)
        zeros = (original == 0) & self.keep_zeros & ~silent
        if self.non_negative:
            y = np.abs(y)
        y = np.where(zeros, 0.0, y)
        if not self.reverse_map:
            return y
        if self.non_negative:
            _refuse_negative_originals(data, original)
        return _mapped_back(original, y, zeros | silent, rng)


def _refuse_overflow(data: Selection, y: FloatArray) -> None:
    wrong = ~np.isfinite(y) & ~np.isnan(data.x)
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
    given : the column each column of ``s`` comes from.
    s : values of the given columns, indicators of categories; a matrix of width 0 if there are none.
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

    def of(self, x: FloatArray, s: FloatArray) -> Selection:
        """Return the same columns with other values."""
        return replace(self, x=x, s=s)

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
                f"given columns {', '.join(dict.fromkeys(self.given))}."
            )


def original_numbers(table: Table, names: tuple[str, ...]) -> FloatArray:
    """Return the table's own values of numeric columns, one row per record; NaN where missing."""
    return np.column_stack([_original(table, name) for name in names])


def _original(table: Table, name: str) -> FloatArray:
    place = [c.name for c in table.columns].index(name)
    column = table.columns[place]
    assert column.values is not None
    return column.values[table.codes[:, place]]


def known_numbers(table: Table, current: Columns, names: list[str]) -> FloatArray:
    """Return numeric columns as a matrix; NaN where a cell says nothing: missing, suppressed or the whole range."""
    attributes = {column.name: column.attribute for column in table.columns}
    columns = [_numbers_of(current[name], attributes[name]) for name in names]
    return np.column_stack(columns) if columns else np.empty((len(table), 0))


def _numbers_of(cells: Cells, attribute: Numeric | Categorical) -> FloatArray:
    if isinstance(cells, Nodes):
        raise ConfigError(f"The column {attribute.name!r} does not hold numbers.")
    return np.where(is_suppressed(cells, attribute), np.nan, cells.midpoints())


# ---- reverse mapping -----------------------------------------------------------------------------


def order_with_ties_drawn(values: FloatArray, rng: Rng) -> IndexArray:
    """Positions in ascending order of the values; equal ones in random order."""
    return np.asarray(np.lexsort((rng.random(len(values)), values)), dtype=np.int64)


def reverse_map(x: FloatArray, y: FloatArray, rng: Rng) -> FloatArray:
    """z_i = the value of ``x`` that has the rank of y_i (Muralidhar, Sarathy & Domingo-Ferrer 2014).

    Equal values of ``y`` are ranked at random: ranked by ``x``, groups that a method published alike would come apart
    into their originals. A record without a value has none afterwards either.
    """
    known = ~np.isnan(y)
    z = np.full_like(x, np.nan)
    z[np.flatnonzero(known)[order_with_ties_drawn(y[known], rng)]] = np.sort(x[known])
    return z


def _mapped_back(original: FloatArray, y: FloatArray, kept: BoolArray, rng: Rng) -> FloatArray:
    """Reverse mapping among the cells that need not stay as they are."""
    mapped = y.copy()
    for i in range(y.shape[1]):
        free = ~kept[:, i]
        mapped[free, i] = reverse_map(original[free, i], y[free, i], rng)
    return mapped
