"""Numeric tables for the tests, and the columns a method publishes for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.infer import numeric_schema
from fedanon.data.table import Table

Matrix = NDArray[np.float64]


def table_of(columns: dict[str, ArrayLike]) -> Table:
    """A table whose columns are all numeric quasi-identifiers."""
    frame = pd.DataFrame(columns).astype(float)
    return Table.from_frame(frame, numeric_schema(frame, "all", name="drawn"))


def correlated(n: int, seed: int = 0) -> Matrix:
    """Four correlated columns of very different size; the third is skewed, none is 0."""
    rng = np.random.default_rng([seed, 2024])  # no method draws the same numbers again
    z = rng.standard_normal((n, 4)) @ np.array([[1, 0.8, 0.5, 0.3], [0, 1, 0.4, -0.6], [0, 0, 1, 0.5], [0, 0, 0, 1]])
    return np.column_stack([50 + 10 * z[:, 0], 1e6 + 1e4 * z[:, 1], np.exp(z[:, 2]), 0.01 * z[:, 3] - 0.5])


def correlated_table(n: int, seed: int = 0) -> Table:
    """The columns a, b, c, d."""
    return table_of(dict(zip("abcd", correlated(n, seed).T, strict=True)))


def published(table: Table, method: str, seed: int = 0, **settings: Any) -> Matrix:
    """What a method publishes, column by column."""
    release = ANONYMIZERS[method](**settings).anonymize(table, rng=seed)
    columns = [release.cells[column.name].midpoints() for column in table.columns]  # type: ignore[union-attr]
    return np.column_stack(columns)[release.groups.labels]


def original(table: Table) -> Matrix:
    """The table's own values."""
    return table.frame.to_numpy(dtype=float)
