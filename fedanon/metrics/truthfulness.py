"""Truthfulness: whether what is published is so."""

from __future__ import annotations

import numpy as np

from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.published import covers


@metric("truthfulness", title="True cells", better="higher")
def truthfulness(table: Table, release: Release) -> float:
    """Share of the published quasi-identifying cells that hold the original value.

    An interval is true if the value lies in it, a node if the value is a leaf below it, a number if it is the value.
    Generalisation is truthful (1.0); means, noise and the thesis's centroids are not.
    """
    by_column = truthfulness_by_column(table, release)
    return float(np.mean(list(by_column.values()))) if by_column else np.nan


def truthfulness_by_column(table: Table, release: Release) -> dict[str, float]:
    """:func:`truthfulness` of every quasi-identifier; empty if nothing is published."""
    kept = ~release.suppressed
    if not kept.any():
        return {}
    labels = release.groups.labels[kept]
    return {
        column.name: float(covers(release.cells[column.name].take(labels), column, table.codes[kept, i]).mean())
        for i, column in enumerate(table.columns)
    }
