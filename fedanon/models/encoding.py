"""Encoding: tables and releases as features, whose number and meaning depend only on the schema.

Every node of a federation that shares the schema shares the encoding: nothing is fitted to data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, Protocol

import numpy as np
import pandas as pd

from fedanon.data.cells import Cells, Nodes, Numbers
from fedanon.data.hierarchy import MISSING, ROOT, Hierarchy
from fedanon.data.rules import CodeRule
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, SchemaError
from fedanon.release.release import Release
from fedanon.types import AnyArray, FeatureArray, FloatArray, IndexArray, Rng

FeatureChoice = Literal["quasi_identifiers", "all"] | Sequence[str]

#: a range with fewer whole numbers is taken number by number, any other in so many pieces
MOST_PIECES, PIECES = 256, 64

#: the cells of a column, and for every row the number of its cell
RowCells = tuple[Cells, AnyArray]


@dataclass(frozen=True)
class Encoding:
    """Which columns become features, and how; build it with :meth:`from_schema`.

    A numeric column is one feature, (x - low) / (high - low) of its declared range, an interval counting as its middle.
    A categorical column has one feature per leaf of its taxonomy; a node spreads the weight 1 evenly over its leaves.
    Of codes by a rule, the uppermost level counts as the leaves: chapters of diagnoses, first signs of postal codes.
    """

    attributes: tuple[Numeric | Categorical, ...]

    @classmethod
    def from_schema(cls, schema: Schema, features: FeatureChoice = "quasi_identifiers") -> Encoding:
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
        return [name for names in self.names_by_column for name in names]

    @property
    def names_by_column(self) -> list[list[str]]:
        """The names of the features of every column."""
        return [column.names for column in self._columns]

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.names)

    def encode_table(self, table: Table) -> FeatureArray:
        """Features of raw rows."""
        return self._weights(_table_cells(table, self._outside(table.schema)), len(table))

    def encode_release(self, release: Release) -> FeatureArray:
        """Features of the published rows, nodes spread over their leaves; suppressed rows are left out."""
        cells = self._release_cells(release)
        if self._outside(release.schema):
            return self._weights(cells, _n_kept(release))
        # rows of a group are equal: encode the groups, then look the rows up
        groups = {name: (published, np.arange(len(published))) for name, (published, _) in cells.items()}
        return self._weights(groups, release.groups.count)[release.groups.labels[~release.suppressed]]

    def draw_release(self, release: Release, rng: Rng) -> FeatureArray:
        """Features of the published rows, each drawn anew: a value inside each interval, a leaf below each node."""
        cells = self._release_cells(release)
        features = np.empty((_n_kept(release), self.width), dtype=np.float32)
        for column, place in self._placed(len(features)):
            published, rows = cells[column.attribute.name]
            features[:, place] = column.draw(published.select(rows), rng)
        return features

    def placed_cells(
        self, release: Release
    ) -> Iterable[tuple[NumericColumn | CategoricalColumn, slice, Cells, AnyArray]]:
        """Every column, the place of its features, its cells, and the cell of every published row."""
        cells = self._release_cells(release)
        for column, place in self._placed(_n_kept(release)):
            yield column, place, *cells[column.attribute.name]

    @cached_property
    def _columns(self) -> tuple[NumericColumn | CategoricalColumn, ...]:
        return tuple(NumericColumn(a) if isinstance(a, Numeric) else CategoricalColumn(a) for a in self.attributes)

    def _placed(self, n_rows: int) -> Iterable[tuple[NumericColumn | CategoricalColumn, slice]]:
        """Every column and the place of its features; nothing if there is no row to encode."""
        ends = np.cumsum([len(column.names) for column in self._columns]).tolist()
        places = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        return zip(self._columns, places, strict=True) if n_rows else ()

    def _weights(self, cells: dict[str, RowCells], n_rows: int) -> FeatureArray:
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
        rest = release.passthrough if kept.all() else release.passthrough[kept]
        quasi = {name: (cells, labels) for name, cells in release.cells.items()}
        return quasi | _frame_cells(rest, self._outside(release.schema), release.schema)


def _usable(attributes: Iterable[Attribute], schema: Schema) -> Iterable[Numeric | Categorical]:
    for attribute in attributes:
        hidden = attribute.role is Role.IDENTIFYING or attribute.name == schema.target
        if hidden or isinstance(attribute, FreeText):
            continue
        if isinstance(attribute, Numeric) and not attribute.has_range:
            raise SchemaError(f"The numeric column {attribute.name!r} declares no range, which a feature needs.")
        yield attribute


def _n_kept(release: Release) -> int:
    return len(release) - int(release.suppressed.sum())


def _distinct_weights(column: Column, cells: Cells) -> FeatureArray:
    """Weights of cells; a release has many more groups than nodes, so those of a taxonomy are computed per node."""
    if not isinstance(cells, Nodes):
        return column.weights(cells)
    nodes = np.arange(len(cells.hierarchy.labels), dtype=np.int32)
    return np.asarray(column.weights(Nodes(nodes, cells.hierarchy))[cells.nodes])


def _table_cells(table: Table, outside: list[Numeric | Categorical]) -> dict[str, RowCells]:
    quasi = {c.name: (c.own_cells, table.codes[:, i]) for i, c in enumerate(table.columns)}
    return quasi | _frame_cells(table.frame, outside, table.schema)


def _frame_cells(frame: pd.DataFrame, attributes: list[Numeric | Categorical], schema: Schema) -> dict[str, RowCells]:
    """Cells of columns that are published as they are, coded like the quasi-identifiers of a table."""
    if not attributes or len(frame) == 0:
        return {}
    names = [a.name for a in attributes]
    quasi = Schema(tuple(attributes), missing_values=schema.missing_values).with_quasi_identifiers(names)
    return _table_cells(Table.from_frame(frame[names], quasi, missing="category"), [])


# ---- Columns of an encoding ----------------------------------------------------------------------
#
# Both kinds read cells of any generality: a raw value is a cell of one point. A missing value says as much as the whole
# domain does, so it is encoded as the widest cell; the width of a column therefore never depends on the data.


class Column(Protocol):
    """The features of one attribute."""

    @property
    def names(self) -> list[str]:
        """Name of every feature."""

    def weights(self, cells: Cells) -> FeatureArray:
        """Expected features of each cell, if every value in it is equally likely."""

    def draw(self, cells: Cells, rng: Rng) -> FeatureArray:
        """Features of one value drawn uniformly from each cell."""


@dataclass(frozen=True)
class NumericColumn:
    """One feature: the position in the declared range, 0 to 1."""

    attribute: Numeric

    @property
    def names(self) -> list[str]:
        """The name of the attribute."""
        return [self.attribute.name]

    def weights(self, cells: Cells) -> FeatureArray:
        """Position of the middle of each cell."""
        low, high = self._bounds(cells)
        return self._scaled((low + high) / 2)

    def draw(self, cells: Cells, rng: Rng) -> FeatureArray:
        """Position of a value inside each cell, a whole number where the attribute holds whole numbers."""
        low, high = self._bounds(cells)
        uniform = rng.random(len(low))
        values = low + uniform * (high - low)
        if self.attribute.integer:
            first, last = np.ceil(low), np.floor(high)
            whole = first + np.floor(uniform * (last - first + 1))
            values = np.where(first <= last, whole, values)
        return self._scaled(values)

    def ends(self, cells: Cells) -> FloatArray:
        """Lowest and highest number of each cell, within the declared range."""
        return np.clip(np.column_stack(self._bounds(cells)), self.attribute.low, self.attribute.high)

    def covered(self, ends: FloatArray) -> FloatArray:
        """For each cell, which share of each of the column's values lies in it; values are pieces of the range."""
        edges, low, high = self._edges, ends[:, :1], ends[:, 1:]
        if self._number_by_number:
            low, high = edges[np.searchsorted(edges, low, "right") - 1], edges[np.searchsorted(edges, high, "right")]
        inside = np.clip(np.minimum(high, edges[1:]) - np.maximum(low, edges[:-1]), 0.0, None) / np.diff(edges)
        # a single number has no length
        point = np.clip(np.searchsorted(edges, ends[:, 0], side="right") - 1, 0, len(edges) - 2)
        alone = np.flatnonzero(inside.sum(axis=1) == 0)
        inside[alone, point[alone]] = 1.0
        return np.asarray(inside)

    def features_of(self, value: IndexArray, ends: FloatArray, where: FloatArray | float) -> FeatureArray:
        """Position of a number in this piece of the range and inside the cell, ``where`` from 0 to 1."""
        low, high = np.maximum(self._edges[value], ends[:, 0]), np.minimum(self._edges[value + 1], ends[:, 1])
        number = low + where * (high - low)
        if self.attribute.integer:
            number = np.clip(np.floor(number + 0.5), ends[:, 0], ends[:, 1])
        return self._scaled(number)

    @property
    def _number_by_number(self) -> bool:
        return self.attribute.integer and self.attribute.width < MOST_PIECES

    @cached_property
    def _edges(self) -> FloatArray:
        """Ends of the pieces: one per whole number where there are few, else equal parts of the range."""
        low, high = self.attribute.low, self.attribute.high
        if self._number_by_number:
            return np.arange(np.floor(low), np.ceil(high) + 2) - 0.5
        return np.linspace(low, high, PIECES + 1)

    def _bounds(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        if isinstance(cells, Numbers):
            low = high = cells.values
        elif isinstance(cells, Nodes):
            low, high = (ends[cells.nodes] for ends in _number_ranges(cells.hierarchy, self.attribute.name))
        else:
            low, high = cells.low, cells.high
        # NaN: missing, so anything in the range
        attribute = self.attribute
        return np.nan_to_num(low, nan=attribute.low), np.nan_to_num(high, nan=attribute.high)

    def _scaled(self, values: FloatArray) -> FeatureArray:
        # published numbers (noise, means) may lie beyond the declared range, true values do not
        scaled = (values - self.attribute.low) / self.attribute.width
        return np.clip(scaled, 0.0, 1.0).astype(np.float32)[:, None]


@dataclass(frozen=True)
class CategoricalColumn:
    """One feature per value of the taxonomy; a node spreads its weight evenly over the values below it."""

    attribute: Categorical

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The values: all leaves but the one that means missing; of a rule, the leaves of its outline."""
        hierarchy = self.attribute.hierarchy if self.attribute.rule is None else self.attribute.rule.outline
        return tuple(label for label in hierarchy.labels[: hierarchy.n_leaves] if label != MISSING)

    @property
    def names(self) -> list[str]:
        """'attribute=value' for every value."""
        return [f"{self.attribute.name}={value}" for value in self.values]

    def weights(self, cells: Cells) -> FeatureArray:
        """1 / (number of values) for every value below each node."""
        first, count = self._below(cells)
        position = np.arange(len(self.values))
        inside = (position >= first[:, None]) & (position < (first + count)[:, None])
        return np.asarray(inside / count[:, None], dtype=np.float32)

    def draw(self, cells: Cells, rng: Rng) -> FeatureArray:
        """One value below each node, one-hot."""
        first, count = self._below(cells)
        chosen = first + np.floor(rng.random(len(first)) * count).astype(np.int64)
        features = np.zeros((len(first), len(self.values)), dtype=np.float32)
        features[np.arange(len(first)), chosen] = 1.0
        return features

    def ends(self, cells: Cells) -> FloatArray:
        """First and last position of the values below each node."""
        first, count = self._below(cells)
        return np.column_stack([first, first + count - 1]).astype(np.float64)

    def covered(self, ends: FloatArray) -> FloatArray:
        """For each cell, 1 for every value in it."""
        position = np.arange(len(self.values))
        return ((position >= ends[:, :1]) & (position <= ends[:, 1:])).astype(np.float64)

    def features_of(self, value: IndexArray, ends: FloatArray, where: FloatArray | float) -> FeatureArray:
        """The value, one-hot."""
        features = np.zeros((len(value), len(self.values)), dtype=np.float32)
        features[np.arange(len(value)), value] = 1.0
        return features

    def _below(self, cells: Cells) -> tuple[AnyArray, AnyArray]:
        """Position of the first value below each node, and how many there are."""
        if not isinstance(cells, Nodes):
            raise SchemaError(f"The column {self.attribute.name!r} is categorical, but numbers are published for it.")
        if self.attribute.rule is not None:
            cells = _outlined(cells, self.attribute.rule)
        if CategoricalColumn(Categorical("", self.attribute.role, cells.hierarchy)).values != self.values:
            raise SchemaError(f"The taxonomy of {self.attribute.name!r} has other values than the encoding's.")
        first, count = _value_ranges(cells.hierarchy)
        return first[cells.nodes], count[cells.nodes]


def _outlined(cells: Nodes, rule: CodeRule) -> Nodes:
    """Nodes of the outline of a rule that hold the cells; which codes are at hand makes no difference."""
    upper = [ROOT if label == MISSING else rule.upper(label) for label in cells.hierarchy.labels]
    nodes = np.array([rule.outline.nodes[label] for label in upper], dtype=np.int32)
    return Nodes(nodes[cells.nodes], rule.outline)


def _value_ranges(hierarchy: Hierarchy) -> tuple[IndexArray, IndexArray]:
    """First value and number of values below each node; all values for the leaf that means missing."""
    is_value = np.array([label != MISSING for label in hierarchy.labels[: hierarchy.n_leaves]])
    before = np.concatenate([[0], np.cumsum(is_value)])
    first = before[hierarchy.first]
    count = before[hierarchy.last + 1] - first
    nothing_known = count == 0
    return np.where(nothing_known, 0, first), np.where(nothing_known, before[-1], count)


@lru_cache(maxsize=64)
def _number_ranges(hierarchy: Hierarchy, name: str) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest number below each node of a taxonomy whose leaves are numbers; NaN for missing."""
    try:
        leaves = [np.nan if x == MISSING else float(x) for x in hierarchy.labels[: hierarchy.n_leaves]]
    except ValueError:
        raise SchemaError(f"The taxonomy of the numeric column {name!r} has leaves that are not numbers.") from None
    spans = [leaves[a : b + 1] for a, b in zip(hierarchy.first, hierarchy.last, strict=True)]
    # fmin and fmax pass over NaN unless there is nothing else
    low = np.array([np.fmin.reduce(span) for span in spans])
    return low, np.array([np.fmax.reduce(span) for span in spans])
