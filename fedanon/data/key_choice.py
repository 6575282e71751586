"""The same table with other quasi-identifiers, with complete rows only, or with some of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedanon.data.schema import Numeric, Role
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError
from fedanon.types import BoolArray


def with_quasi_identifiers(table: Table, names: Sequence[str]) -> Table:
    """A copy in which exactly ``names`` are quasi-identifiers; former ones become insensitive."""
    lost = [name for name in names if table.schema[name].role is Role.IDENTIFYING]
    if lost:
        raise ConfigError(f"Identifying columns are dropped, so they cannot be keys: {', '.join(lost)}.")
    return table.recoded(table.schema.with_quasi_identifiers(names))


def numeric_quasi_identifiers(table: Table) -> list[str]:
    """Names of the numeric quasi-identifiers."""
    return [c.name for c in table.columns if isinstance(c.attribute, Numeric)]


def lacking_numbers(table: Table) -> BoolArray:
    """Which rows lack a numeric quasi-identifier."""
    lacking = np.zeros(len(table), dtype=bool)
    for i, column in enumerate(table.columns):
        if column.values is not None:
            lacking |= np.isnan(column.values)[table.codes[:, i]]
    return lacking


def complete_rows(table: Table) -> Table:
    """The rows in which no numeric quasi-identifier is missing."""
    lacking = lacking_numbers(table)
    if lacking.all():
        raise DataError("Every row lacks one of the chosen columns.")
    return table.select_rows(np.flatnonzero(~lacking)) if lacking.any() else table


def sample_of(table: Table, rows: int) -> Table:
    """As many rows drawn at random, always the same ones, in the order of the table; all if it has no more."""
    if rows >= len(table):
        return table
    return table.select_rows(np.sort(np.random.default_rng(0).choice(len(table), rows, replace=False)))
