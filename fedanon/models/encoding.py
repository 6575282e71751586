"""Encoding: tables and releases as features; their number and meaning depend on the schema alone.

Every node of a federation that shares the schema shares the encoding: nothing is fitted to data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.release import Release
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import CodedColumn, Table
from fedanon.errors import ConfigError
from fedanon.models.columns import CategoricalColumn, Column, Features, NumericColumn, Rng

FeatureChoice = Literal["quasi_identifiers", "all"] | Sequence[str]

#: the cells of a column, and for every row the number of its cell
RowCells = tuple[Cells, NDArray[Any]]


@dataclass(frozen=True)
class Encoding:
    """Which columns become features, and how; build it with :meth:`of`.

    A numeric column is one feature, (x - low) / (high - low) of its declared range, an interval counting as its middle.
    A categorical column has one feature a leaf of its taxonomy; a node spreads the weight 1 evenly over its leaves.
    """

    attributes: tuple[Numeric | Categorical, ...]

    @classmethod
    def of(cls, schema: Schema, features: FeatureChoice = "quasi_identifiers") -> Encoding:
        """The encoding of a schema.

        Parameters
        ----------
        schema : the declaration of the columns.
        features : the quasi-identifiers, all columns but text, identifying ones and the target, or names of columns.
        """
        if features == "quasi_identifiers":
            return cls(schema.quasi_identifiers)
        if features == "all":
            return cls(tuple(_usable(schema.attributes, schema)))
        chosen = [schema[name] for name in features]
        usable = tuple(_usable(chosen, schema))
        if not usable or len(usable) < len(chosen):
            refused = ", ".join(a.name for a in chosen if a not in usable) or "none given"
            raise ConfigError(
                f"Features must be numeric or categorical, not identifying and not the target: {refused}."
            )
        return cls(usable)

    @cached_property
    def names(self) -> list[str]:
        """Name of every feature, such as 'age' or 'sex=Female'."""
        return [name for column in self._columns for name in column.names]

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.names)

    def table(self, table: Table) -> Features:
        """Features of raw rows."""
        return self._weights(_table_cells(table, self._outside(table.schema)), len(table))

    def release(self, release: Release) -> Features:
        """Features of the published rows, nodes spread over their leaves; suppressed rows are left out."""
        cells = self._release_cells(release)
        if self._outside(release.schema):
            return self._weights(cells, _n_kept(release))
        # rows of a group are equal: encode the groups, then look the rows up
        groups = {name: (published, np.arange(len(published))) for name, (published, _) in cells.items()}
        return self._weights(groups, release.groups.count)[release.groups.labels[~release.suppressed]]

    def draw(self, release: Release, rng: Rng) -> Features:
        """Features of the published rows, each drawn anew: a value inside each interval, a leaf below each node."""
        cells = self._release_cells(release)
        features = np.empty((_n_kept(release), self.width), dtype=np.float32)
        for column, place in self._placed(len(features)):
            published, rows = cells[column.attribute.name]
            features[:, place] = column.draw(published.take(rows), rng)
        return features

    # ---- inside ---------------------------------------------------------------------------------

    @cached_property
    def _columns(self) -> tuple[NumericColumn | CategoricalColumn, ...]:
        return tuple(NumericColumn(a) if isinstance(a, Numeric) else CategoricalColumn(a) for a in self.attributes)

    def _placed(self, n_rows: int) -> Iterable[tuple[NumericColumn | CategoricalColumn, slice]]:
        """Every column and where its features stand; nothing where there is no row to encode."""
        ends = np.cumsum([len(column.names) for column in self._columns]).tolist()
        places = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        return zip(self._columns, places, strict=True) if n_rows else ()

    def _weights(self, cells: dict[str, RowCells], n_rows: int) -> Features:
        features = np.empty((n_rows, self.width), dtype=np.float32)
        for column, place in self._placed(n_rows):
            published, rows = cells[column.attribute.name]
            features[:, place] = _distinct_weights(column, published)[rows]
        return features

    def _outside(self, schema: Schema) -> list[Numeric | Categorical]:
        """The columns that are features but not quasi-identifiers."""
        quasi = {a.name for a in schema.quasi_identifiers}
        return [a for a in self.attributes if a.name not in quasi]

    def _release_cells(self, release: Release) -> dict[str, RowCells]:
        kept = ~release.suppressed
        labels = release.groups.labels[kept]
        rest = release.rest if kept.all() else release.rest[kept]
        quasi = {name: (cells, labels) for name, cells in release.cells.items()}
        return quasi | _frame_cells(rest, self._outside(release.schema), release.schema)


def _usable(attributes: Iterable[Attribute], schema: Schema) -> Iterable[Numeric | Categorical]:
    for attribute in attributes:
        hidden = attribute.role is Role.IDENTIFYING or attribute.name == schema.target
        if not hidden and not isinstance(attribute, FreeText):
            yield attribute


def _n_kept(release: Release) -> int:
    return len(release) - int(release.suppressed.sum())


def _distinct_weights(column: Column, cells: Cells) -> Features:
    """Weights of cells; a release has many more groups than nodes, so those of a taxonomy are computed once a node."""
    if not isinstance(cells, Nodes):
        return column.weights(cells)
    nodes = np.arange(len(cells.hierarchy.labels), dtype=np.int32)
    return np.asarray(column.weights(Nodes(nodes, cells.hierarchy))[cells.nodes])


def _table_cells(table: Table, outside: list[Numeric | Categorical]) -> dict[str, RowCells]:
    quasi = {c.name: (_own_cells(c), table.codes[:, i]) for i, c in enumerate(table.columns)}
    return quasi | _frame_cells(table.frame, outside, table.schema)


def _frame_cells(frame: pd.DataFrame, attributes: list[Numeric | Categorical], schema: Schema) -> dict[str, RowCells]:
    """Cells of columns that are carried along as they are: coded like the quasi-identifiers of a table."""
    if not attributes or len(frame) == 0:
        return {}
    names = [a.name for a in attributes]
    quasi = Schema(tuple(attributes), missing_values=schema.missing_values).with_quasi_identifiers(names)
    return _table_cells(Table.from_frame(frame[names], quasi, missing="category"), [])


def _own_cells(column: CodedColumn) -> Cells:
    """A cell for every code of a column that holds the code alone."""
    if column.values is not None:
        return Intervals(column.values, column.values)
    return Nodes(np.arange(column.size, dtype=np.int32), column.hierarchy)
