"""Suppressing cells; :func:`fedanon.data.cells.is_suppressed` tells which are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Intervals, Nodes, Numbers
from fedanon.data.schema import Categorical, Numeric

Mask = NDArray[np.bool_]


def suppress(cells: Cells, attribute: Numeric | Categorical, rows: NDArray[Any]) -> Cells:
    """A copy of the column in which the cells of a mask of rows say nothing."""
    if isinstance(cells, Nodes):
        return Nodes(np.where(rows, np.int32(cells.hierarchy.root), cells.nodes), cells.hierarchy)
    assert isinstance(attribute, Numeric)
    bounds = (cells.values, cells.values) if isinstance(cells, Numbers) else (cells.low, cells.high)
    return Intervals(np.where(rows, attribute.low, bounds[0]), np.where(rows, attribute.high, bounds[1]))
