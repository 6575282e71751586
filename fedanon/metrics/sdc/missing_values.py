"""Missing values that a release made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Intervals, Nodes, is_suppressed
from fedanon.data.hierarchy import MISSING
from fedanon.data.release import Release
from fedanon.data.table import CodedColumn, Table
from fedanon.metrics.base import metric

BoolArray = NDArray[np.bool_]


def says_nothing(cells: Cells, column: CodedColumn) -> BoolArray:
    """Which cells are missing: empty, the root of a taxonomy, or the whole declared range."""
    return is_suppressed(cells, column.attribute) | _is_empty(cells)


def _is_empty(cells: Cells) -> BoolArray:
    if isinstance(cells, Nodes):
        return np.asarray(cells.nodes == cells.hierarchy.codes.get(MISSING, -1))
    return np.isnan(cells.low if isinstance(cells, Intervals) else cells.values)


@metric("new_missing", title="New missing values", better="lower")
def new_missing(table: Table, release: Release) -> float:
    r"""Number of quasi-identifying cells that say nothing in the release and were not missing in the table.

    .. math:: M = \sum_{ip} [x_{ip} \text{ present} \wedge y_{ip} \text{ missing}]

    (Morais 2022, eq. 5.6.) Cells of suppressed rows count; an interval or node that still tells something does not.
    """
    total = 0
    for i, column in enumerate(table.columns):
        present = table.codes[:, i] != column.size - 1 if column.has_missing else np.ones(len(table), dtype=bool)
        # suppressed rows have label -1 and take the last entry
        hidden = np.append(says_nothing(release.cells[column.name], column), True)[release.groups.labels]
        total += int((present & hidden).sum())
    return float(total)
