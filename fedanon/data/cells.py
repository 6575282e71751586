"""Cells: what a release publishes for one column, one cell a group. Typed arrays, never text.

Text appears only at the border: ``texts`` writes a column for people and files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import MISSING, FloatArray, Hierarchy, IntArray
from fedanon.data.schema import Categorical, Numeric


@dataclass(frozen=True, eq=False)
class Intervals:
    """Closed intervals [low, high] of a numeric column; NaN bounds publish a missing value."""

    low: FloatArray
    high: FloatArray

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: NDArray[Any]) -> Intervals:
        """The cells at ``rows``."""
        return Intervals(self.low[rows], self.high[rows])

    def keys(self) -> NDArray[Any]:
        """Columns whose equality is the equality of the published cells."""
        return np.column_stack([_orderable(self.low), _orderable(self.high)])

    def midpoints(self) -> FloatArray:
        """Middle of every interval."""
        return np.asarray((self.low + self.high) / 2)

    def texts(self) -> NDArray[np.object_]:
        """Cells for people: '[17, 25]', or '17' where the interval is a point."""
        low, high = _number_texts(self.low), _number_texts(self.high)
        return np.array([a if a == b else f"[{a}, {b}]" for a, b in zip(low, high, strict=True)], dtype=object)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of a taxonomy."""

    nodes: IntArray
    hierarchy: Hierarchy

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, rows: NDArray[Any]) -> Nodes:
        """The cells at ``rows``."""
        return Nodes(self.nodes[rows], self.hierarchy)

    def keys(self) -> NDArray[Any]:
        """Columns whose equality is the equality of the published cells."""
        return self.nodes[:, None].astype(np.float64)

    def texts(self) -> NDArray[np.object_]:
        """Labels of the nodes."""
        return np.array(self.hierarchy.labels, dtype=object)[self.nodes]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Single numbers that need not be any record's true value (means, noise)."""

    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[Any]) -> Numbers:
        """The cells at ``rows``."""
        return Numbers(self.values[rows])

    def keys(self) -> NDArray[Any]:
        """Columns whose equality is the equality of the published cells."""
        return _orderable(self.values)[:, None]

    def midpoints(self) -> FloatArray:
        """The numbers themselves."""
        return self.values

    def texts(self) -> NDArray[np.object_]:
        """The numbers, written so that they read back exactly."""
        return np.array(_number_texts(self.values), dtype=object)


Cells = Intervals | Nodes | Numbers


def whole_range(attribute: Numeric, count: int) -> Intervals:
    """Intervals that say nothing: the declared range, ``count`` times."""
    return Intervals(np.full(count, float(attribute.low)), np.full(count, float(attribute.high)))


def is_suppressed(cells: Cells, attribute: Numeric | Categorical) -> NDArray[np.bool_]:
    """Which cells say nothing: '*' in a categorical column, the whole declared range in a numeric one."""
    if isinstance(cells, Nodes):
        return np.asarray(cells.nodes == cells.hierarchy.root)
    if isinstance(cells, Numbers):
        return np.zeros(len(cells), dtype=bool)
    assert isinstance(attribute, Numeric)
    everything = (cells.low <= attribute.low) & (cells.high >= attribute.high)
    return np.asarray(everything & (cells.low < cells.high))


def _orderable(values: FloatArray) -> FloatArray:
    """NaN replaced by a number no declared range holds, so that equal cells compare equal."""
    return np.where(np.isnan(values), np.inf, values)


def _number_texts(values: FloatArray) -> list[str]:
    return [_number_text(value) for value in values.tolist()]


def _number_text(value: float) -> str:
    if value != value:
        return MISSING
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
