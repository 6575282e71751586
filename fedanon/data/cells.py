"""Cells: what a release publishes for one column, one cell per group. Typed arrays, never text.

Text appears only at the border: ``texts`` writes a column for people and files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import MISSING, ROOT, Hierarchy
from fedanon.data.rules import extend_tree
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric
from fedanon.errors import DataError, SchemaError
from fedanon.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Intervals:
    """Closed intervals [low, high] of a numeric column; NaN bounds publish a missing value."""

    low: FloatArray
    high: FloatArray

    def __len__(self) -> int:
        return len(self.low)

    def select(self, rows: NDArray[Any]) -> Intervals:
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

    def select(self, rows: NDArray[Any]) -> Nodes:
        """The cells at ``rows``."""
        return Nodes(self.nodes[rows], self.hierarchy)

    def placed_in(self, tree: Hierarchy) -> Nodes:
        """The same labels as nodes of another tree; -1 where it does not have them."""
        places = np.array([tree.nodes.get(label, -1) for label in self.hierarchy.labels], dtype=np.int32)
        return Nodes(places[self.nodes], tree)

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

    def select(self, rows: NDArray[Any]) -> Numbers:
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


def concatenate_cells(parts: Sequence[Cells]) -> Cells:
    """The cells of one column, part after part; all parts are of one kind and, where they are nodes, of one tree."""
    first = parts[0]
    if isinstance(first, Nodes):
        tree = first.hierarchy
        nodes = [part if part.hierarchy is tree else part.placed_in(tree) for part in parts if isinstance(part, Nodes)]
        return Nodes(np.concatenate([part.nodes for part in nodes]), tree)
    if isinstance(first, Numbers):
        return Numbers(np.concatenate([part.values for part in parts if isinstance(part, Numbers)]))
    same = [part for part in parts if isinstance(part, Intervals)]
    return Intervals(np.concatenate([part.low for part in same]), np.concatenate([part.high for part in same]))


def cell_texts(cells: Cells, attribute: Attribute) -> NDArray[np.object_]:
    """Cells for people and files, as the rule of their column writes them; :func:`parse_cells` reads them back."""
    rule = attribute.rule if isinstance(attribute, Numeric) else None
    if rule is None or isinstance(cells, Nodes):
        return cells.texts()
    assert isinstance(attribute, Numeric)
    low, high = (cells.values, cells.values) if isinstance(cells, Numbers) else (cells.low, cells.high)
    pairs, at = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True, equal_nan=True)
    shown = [MISSING if a != a else rule.write((a, b), attribute.domain) for a, b in pairs.tolist()]
    return np.array(shown, dtype=object)[at.ravel()]


def as_written(cells: Cells, attribute: Attribute) -> Cells:
    """The cells as the rule of their column can write them: whole days, and bands no finer than it allows."""
    rule = attribute.rule if isinstance(attribute, Numeric) else None
    if rule is None or isinstance(cells, Nodes):
        return cells
    assert isinstance(attribute, Numeric)
    if isinstance(cells, Numbers):
        values = rule.clip(cells.values, attribute.domain)
        return Numbers(np.round(values) if rule.whole else values)
    low, high = (np.floor(cells.low), np.ceil(cells.high)) if rule.whole else (cells.low, cells.high)
    first, last = rule.grain(low, attribute.domain), rule.grain(high, attribute.domain)
    if first is None or last is None:
        return Intervals(low, high)
    # where bands of real numbers meet, the end of one is the beginning of the next
    meets = (high == last[0]) & (low < high) & (not attribute.integer)
    return Intervals(first[0], np.where(meets, high, last[1]))


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


def cell_losses(cells: Cells, attribute: Numeric | Categorical) -> FloatArray:
    """NCP of publishing each cell, from 0 (one value) to 1 (anything).

    A node costs leaves(node) / leaves(root), 0 for a leaf; an interval its length over the declared range, at most 1. A
    number is one value and costs nothing, nor does a missing value, which says what it is.
    """
    if isinstance(cells, Nodes):
        return cells.hierarchy.leaf_loss[cells.nodes]
    if isinstance(cells, Numbers):
        return np.zeros(len(cells))
    assert isinstance(attribute, Numeric)
    return np.minimum(np.nan_to_num((cells.high - cells.low) / attribute.width, nan=0.0), 1.0)


def _orderable(values: FloatArray) -> FloatArray:
    """NaN replaced by a number no declared range holds, so that equal cells compare equal."""
    return np.where(np.isnan(values), np.inf, values)


def _number_texts(values: FloatArray) -> list[str]:
    return [_number_text(value) for value in values.tolist()]


def _number_text(value: float) -> str:
    if value != value:
        return MISSING
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


# ---- Published text read back into typed cells ---------------------------------------------------

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_INTERVAL = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\]|({_NUMBER})")


def parse_cells(texts: Iterable[str], attribute: Attribute) -> Cells:
    """The cells whose texts these are.

    Parameters
    ----------
    texts : cells as text: '[17, 25]', '17', '(missing)', '*' or labels of the taxonomy.
    attribute : the column they belong to.

    Returns
    -------
    Intervals for a numeric column (a single number is an interval of one point, '*' the declared range), or nodes
    where its taxonomy was published; nodes for a categorical one.

    Raises
    ------
    DataError
        If a text is no cell of the column.
    """
    cells = [str(text) for text in texts]
    if isinstance(attribute, FreeText):
        raise SchemaError(f"The column {attribute.name!r} is free text; it has no cells.")
    if isinstance(attribute, Numeric):
        found = {text: _bounds(text, attribute) for text in set(cells)}
        bounds = [found[text] for text in cells]
        if attribute.hierarchy is None or None not in bounds:
            return _intervals(bounds, attribute)
        return _nodes(cells, attribute.hierarchy, attribute.name)
    tree = attribute.hierarchy
    if attribute.rule is not None:
        tree = extend_tree(attribute.rule, tree, set(cells) - {MISSING}, name=attribute.name)
    return _nodes(cells, tree, attribute.name)


def _bounds(text: str, attribute: Numeric) -> tuple[float, float] | None:
    if text == MISSING:
        return np.nan, np.nan
    if text == ROOT:
        return attribute.low, attribute.high
    if attribute.rule is not None:
        return attribute.rule.parse(text, attribute.domain)
    found = _INTERVAL.fullmatch(text)
    if found is None:
        return None
    low, high, point = found.groups()
    bounds = (float(low), float(high)) if point is None else (float(point), float(point))
    return bounds if bounds[0] <= bounds[1] else None


def _intervals(bounds: list[tuple[float, float] | None], attribute: Numeric) -> Intervals:
    sound = [pair for pair in bounds if pair is not None]
    _refuse(len(bounds) - len(sound), attribute.name, "are neither numbers nor intervals")
    low, high = np.array(sound, dtype=np.float64).reshape(-1, 2).T
    return Intervals(low.copy(), high.copy())


def _nodes(texts: list[str], hierarchy: Hierarchy, name: str) -> Nodes:
    if MISSING in texts:
        hierarchy = hierarchy.with_missing()
    nodes = np.array([hierarchy.nodes.get(text, -1) for text in texts], dtype=np.int32)
    _refuse(int((nodes < 0).sum()), name, "are no labels of its taxonomy")
    return Nodes(nodes, hierarchy)


def _refuse(count: int, name: str, what: str) -> None:
    if count:
        raise DataError(f"The column {name!r} of the release has {count} cells that {what}.")
