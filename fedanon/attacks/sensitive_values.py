"""Sensitive values: a column as published and as it truly is, and how often each class holds a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table, missing_mask, texts
from fedanon.errors import ConfigError, NotApplicableError
from fedanon.release.release import Release
from fedanon.types import FloatArray, IndexArray, IntArray


@dataclass(frozen=True, eq=False)
class SensitivePair:
    """A sensitive column, as published and as it truly is.

    Parameters
    ----------
    name : of the column.
    published, true : number of each row's value in the release and in the table; a missing value has a number too.
    values : the value of every number, as float for a numeric column; without the missing one, which would be last.
    size : how many numbers there are.
    """

    name: str
    published: IntArray
    true: IntArray
    values: pd.Index[Any]
    size: int

    def by_class(self, classes: Groups) -> ClassValues:
        """Group the published values by class."""
        return ClassValues.from_codes(classes, self.published)

    def hits(self, classes: Groups, chances: Any) -> Any:
        """Return the chance that each published row's true value is guessed, given that of each pair of ``by_class``.

        A true value that the class does not publish is never guessed.
        """
        known = self.by_class(classes)
        shown = ~classes.suppressed
        size = np.int64(self.size)
        keys, wanted = known.labels * size + known.codes, classes.labels[shown] * size + self.true[shown]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, chances[at], 0.0)


def sensitive_pair(table: Table, release: Release, column: str = "") -> SensitivePair:
    """Read the sensitive ``column``, by default the schema's first one; some row must be published."""
    if release.classes.count == 0:
        raise NotApplicableError("The release publishes no row.")
    name = sensitive_column(table.schema, column)
    (published, true), values, size = values_of([release.passthrough, table.frame], table.schema, name)
    return SensitivePair(name, published, true, values, size)


def values_of(frames: Sequence[pd.DataFrame], schema: Schema, name: str) -> tuple[list[IntArray], pd.Index[Any], int]:
    """Number a column of several frames alike: the numbers in each, the values, and how many numbers there are."""
    parts = [_readable(frame[name], schema, name) for frame in frames]
    codes, values = pd.factorize(pd.concat(parts, ignore_index=True), sort=True)
    missing = codes < 0
    numbers = np.where(missing, len(values), codes).astype(np.int32)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(numbers, ends), pd.Index(values), len(values) + bool(missing.any())


def sensitive_column(schema: Schema, column: str = "") -> str:
    """Return the name of the column, after a check that it is published as it is."""
    if column:
        if schema[column].role in (Role.IDENTIFYING, Role.QUASI_IDENTIFYING):
            raise ConfigError(f"The 'column' parameter names {column!r}, whose role is {schema[column].role}.")
        return column
    found = [*schema.sensitive, *([schema.target] if schema.target else [])]
    if not found:
        raise NotApplicableError("The schema declares no sensitive column and no target.")
    return found[0]


def _readable(column: pd.Series[Any], schema: Schema, name: str) -> pd.Series[Any]:
    """Make cells compare equal where they mean the same, whether they come from a frame or a file."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return _read_cells(column, schema, name)
    # texts repeat: each is read once
    codes, found = pd.factorize(column, use_na_sentinel=False)
    return _read_cells(pd.Series(found, dtype=column.dtype), schema, name).take(codes).reset_index(drop=True)


def _read_cells(column: pd.Series[Any], schema: Schema, name: str) -> pd.Series[Any]:
    absent = missing_mask(column, schema)
    if isinstance(schema[name], Numeric):
        return pd.to_numeric(column.where(~absent), errors="coerce").astype(np.float64)
    return texts(column).where(~absent).astype(object)


@dataclass(frozen=True, eq=False)
class ClassValues:
    """The distinct pairs of class and value, and how often each occurs.

    Parameters
    ----------
    labels, codes : class and value of each pair, in order of class.
    counts : rows with each pair.
    pair_of : the pair of every row; -1 for rows that are in no class.
    classes : number of classes.
    """

    labels: IndexArray
    codes: IndexArray
    counts: IndexArray
    pair_of: IndexArray
    classes: int

    @classmethod
    def from_codes(cls, classes: Groups, codes: NDArray[Any]) -> ClassValues:
        """Group the values ``codes`` of the rows by their classes."""
        kept = np.flatnonzero(~classes.suppressed)
        pairs = Groups.equal_rows(np.column_stack([classes.labels[kept], codes[kept]]))
        rows = kept[pairs.first_rows]
        pair_of = np.full(len(codes), -1, dtype=np.int64)
        pair_of[kept] = pairs.labels
        return cls(
            classes.labels[rows].astype(np.int64), codes[rows].astype(np.int64), pairs.sizes, pair_of, classes.count
        )

    @cached_property
    def distinct(self) -> IndexArray:
        """Number of different values in each class."""
        return np.bincount(self.labels, minlength=self.classes)

    @cached_property
    def most(self) -> IndexArray:
        """How often the most common value of each class occurs."""
        return self._highest(self.counts)

    @cached_property
    def modal(self) -> NDArray[np.bool_]:
        """Which pairs are of a most common value of their class."""
        return np.asarray(self.counts == self.most[self.labels])

    @cached_property
    def guess_chance(self) -> FloatArray:
        """For each pair, the chance that a most common value of the class, drawn where several are, is this one."""
        return self.modal / self._number(self.modal)[self.labels]

    def guess_chance_without_one(self, domain: int) -> FloatArray:
        r"""Compute :attr:`guess_chance` for an attacker who knows one other value that the person does not have.

        The excluded value is any of the ``domain - 1`` others with equal chance. A value that shares the first place
        with a - 1 others is guessed with chance :math:`\frac{1}{D-1} + (1 - \frac{a-1}{D-1})\frac1a`; one of b in the
        second place behind a single first with :math:`\frac{1}{D-1}\frac1b`.
        """
        first = self._number(self.modal)[self.labels]
        second = ~self.modal & (self.counts == self._highest(np.where(self.modal, 0, self.counts))[self.labels])
        behind = self._number(second)[self.labels]
        chance = 1 / (domain - 1)
        of_first = np.where(first > 1, chance + (1 - (first - 1) * chance) / first, 1.0)
        of_second = np.where(first == 1, chance / np.maximum(behind, 1), 0.0)
        return np.asarray(np.where(self.modal, of_first, np.where(second, of_second, 0.0)))

    def _highest(self, counts: IndexArray) -> IndexArray:
        highest = np.zeros(self.classes, dtype=np.int64)
        np.maximum.at(highest, self.labels, counts)
        return highest

    def _number(self, pairs: NDArray[np.bool_]) -> IndexArray:
        return np.bincount(self.labels[pairs], minlength=self.classes)
