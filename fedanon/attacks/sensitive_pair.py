"""A sensitive column twice, as it is published and as it is true, in one numbering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedanon.attacks.base import NotApplicableError
from fedanon.attacks.class_values import ClassValues
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import IntArray
from fedanon.data.release import Release
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table, missing_mask, texts
from fedanon.errors import ConfigError


@dataclass(frozen=True, eq=False)
class SensitivePair:
    """Values of a column.

    Parameters
    ----------
    name : of the column.
    published, true : number of the value of every row as released and as it is; a missing value has a number too.
    values : the value of every number, as float for a numeric column; without the missing one, which would be last.
    size : how many numbers there are.
    """

    name: str
    published: IntArray
    true: IntArray
    values: pd.Index[Any]
    size: int

    def by_class(self, classes: Groups) -> ClassValues:
        """What is published of every class."""
        return ClassValues.of(classes, self.published)

    def hits(self, classes: Groups, chances: Any) -> Any:
        """The chance with which each published row's true value is guessed, given that of each pair of ``by_class``.

        A value that is true but not published of the class is never guessed.
        """
        known = self.by_class(classes)
        shown = ~classes.suppressed
        size = np.int64(self.size)
        keys, wanted = known.labels * size + known.codes, classes.labels[shown] * size + self.true[shown]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, chances[at], 0.0)


def sensitive_pair(table: Table, release: Release, column: str = "") -> SensitivePair:
    """The sensitive ``column``, by default the schema's first one; some row must be published."""
    if release.classes.count == 0:
        raise NotApplicableError("The release publishes no row.")
    name = sensitive_column(table.schema, column)
    (published, true), values, size = values_of([release.rest, table.frame], table.schema, name)
    return SensitivePair(name, published, true, values, size)


def values_of(frames: Sequence[pd.DataFrame], schema: Schema, name: str) -> tuple[list[IntArray], pd.Index[Any], int]:
    """A column of several frames in one numbering: the numbers in each, the values, and how many numbers there are."""
    parts = [_readable(frame[name], schema, name) for frame in frames]
    codes, values = pd.factorize(pd.concat(parts, ignore_index=True), sort=True)
    missing = codes < 0
    numbers = np.where(missing, len(values), codes).astype(np.int32)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(numbers, ends), pd.Index(values), len(values) + bool(missing.any())


def sensitive_column(schema: Schema, column: str = "") -> str:
    """The name of the column, after a check that it is published as it is."""
    if column:
        if schema[column].role in (Role.IDENTIFYING, Role.QUASI_IDENTIFYING):
            raise ConfigError(f"The 'column' parameter names {column!r}, whose role is {schema[column].role}.")
        return column
    found = [*schema.sensitive, *([schema.target] if schema.target else [])]
    if not found:
        raise NotApplicableError("The schema declares no sensitive column and no target.")
    return found[0]


def _readable(column: pd.Series[Any], schema: Schema, name: str) -> pd.Series[Any]:
    """Cells that compare equal where they mean the same, whether they come from a frame or a file."""
    absent = missing_mask(column, schema)
    if isinstance(schema[name], Numeric):
        return pd.to_numeric(column.where(~absent), errors="coerce").astype(np.float64)
    return texts(column).where(~absent).astype(object)
