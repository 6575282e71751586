"""Published text read back into typed cells; the inverse of ``Cells.texts``."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.hierarchy import MISSING, ROOT, Hierarchy
from fedanon.data.schema import Attribute, FreeText, Numeric
from fedanon.errors import DataError, SchemaError

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
        bounds = [_bounds(text, attribute) for text in cells]
        if attribute.hierarchy is None or None not in bounds:
            return _intervals(bounds, attribute)
        return _nodes(cells, attribute.hierarchy, attribute.name)
    return _nodes(cells, attribute.hierarchy, attribute.name)


def _bounds(text: str, attribute: Numeric) -> tuple[float, float] | None:
    if text == MISSING:
        return np.nan, np.nan
    if text == ROOT:
        return attribute.low, attribute.high
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
