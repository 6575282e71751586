"""Columns of an encoding: one numeric or categorical attribute as features.

Both kinds read cells of any generality: a raw value is a cell of one point. A missing value tells as much as the whole
domain does, so it is encoded as the widest cell; the width of a column therefore never depends on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Nodes, Numbers
from fedanon.data.hierarchy import MISSING, FloatArray, Hierarchy
from fedanon.data.schema import Categorical, Numeric
from fedanon.errors import SchemaError

Rng = np.random.Generator
Features = NDArray[np.float32]


class Column(Protocol):
    """The features of one attribute."""

    @property
    def names(self) -> list[str]:
        """Name of every feature."""

    def weights(self, cells: Cells) -> Features:
        """Expected features of each cell, if every value in it is equally likely."""

    def draw(self, cells: Cells, rng: Rng) -> Features:
        """Features of one value drawn uniformly from each cell."""


@dataclass(frozen=True)
class NumericColumn:
    """One feature: the position in the declared range, 0 to 1."""

    attribute: Numeric

    @property
    def names(self) -> list[str]:
        """The name of the attribute."""
        return [self.attribute.name]

    def weights(self, cells: Cells) -> Features:
        """Position of the middle of each cell."""
        low, high = self._bounds(cells)
        return self._scaled((low + high) / 2)

    def draw(self, cells: Cells, rng: Rng) -> Features:
        """Position of a value inside each cell, a whole number where the attribute holds whole numbers."""
        low, high = self._bounds(cells)
        uniform = rng.random(len(low))
        values = low + uniform * (high - low)
        if self.attribute.integer:
            first, last = np.ceil(low), np.floor(high)
            whole = first + np.floor(uniform * (last - first + 1))
            values = np.where(first <= last, whole, values)
        return self._scaled(values)

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

    def _scaled(self, values: FloatArray) -> Features:
        # published numbers (noise, means) may lie beyond the declared range, true values do not
        scaled = (values - self.attribute.low) / self.attribute.width
        return np.clip(scaled, 0.0, 1.0).astype(np.float32)[:, None]


@dataclass(frozen=True)
class CategoricalColumn:
    """One feature a value of the taxonomy; a node spreads its weight evenly over the values below it."""

    attribute: Categorical

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The values: all leaves but the one that means missing."""
        hierarchy = self.attribute.hierarchy
        return tuple(label for label in hierarchy.labels[: hierarchy.n_leaves] if label != MISSING)

    @property
    def names(self) -> list[str]:
        """'attribute=value' for every value."""
        return [f"{self.attribute.name}={value}" for value in self.values]

    def weights(self, cells: Cells) -> Features:
        """1 / (number of values) for every value below each node."""
        first, count = self._below(cells)
        position = np.arange(len(self.values))
        inside = (position >= first[:, None]) & (position < (first + count)[:, None])
        return np.asarray(inside / count[:, None], dtype=np.float32)

    def draw(self, cells: Cells, rng: Rng) -> Features:
        """One value below each node, one-hot."""
        first, count = self._below(cells)
        chosen = first + np.floor(rng.random(len(first)) * count).astype(np.int64)
        features = np.zeros((len(first), len(self.values)), dtype=np.float32)
        features[np.arange(len(first)), chosen] = 1.0
        return features

    def _below(self, cells: Cells) -> tuple[NDArray[Any], NDArray[Any]]:
        """Position of the first value below each node, and how many there are."""
        if not isinstance(cells, Nodes):
            raise SchemaError(f"The column {self.attribute.name!r} is categorical, but numbers are published for it.")
        if CategoricalColumn(Categorical("", self.attribute.role, cells.hierarchy)).values != self.values:
            raise SchemaError(f"The taxonomy of {self.attribute.name!r} has other values than the encoding's.")
        first, count = _value_ranges(cells.hierarchy)
        return first[cells.nodes], count[cells.nodes]


def _value_ranges(hierarchy: Hierarchy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
