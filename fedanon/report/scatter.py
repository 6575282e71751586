"""Originals against published values of every masked number (Morais 2022, tables 40 and 41): for the steward alone."""

from __future__ import annotations

import numpy as np

from fedanon.data.table import Table
from fedanon.release.release import Release
from fedanon.report.charts import Panel, Series, spans_decades
from fedanon.sdc.metrics.numeric_pair import numeric_pair

#: most records drawn, evenly spread over the rows
MOST_DRAWN = 2000


def scatter_panels(table: Table, release: Release) -> list[Panel]:
    """Return one panel per numeric quasi-identifier of ``table``; what lies on the diagonal is unchanged."""
    pair = numeric_pair(table, release, complete=False)
    if pair is None:
        return []
    names = [column.name for column in table.columns if column.values is not None]
    return [_panel(name, x, y) for name, x, y in zip(names, pair.original.T, pair.published.T, strict=True)]


def _panel(name: str, original: np.ndarray, published: np.ndarray) -> Panel:
    known = np.flatnonzero(~np.isnan(original) & ~np.isnan(published))
    drawn = known[np.unique(np.linspace(0, len(known) - 1, MOST_DRAWN).astype(np.int64))] if len(known) else known
    x, y = original[drawn].tolist(), published[drawn].tolist()
    log = spans_decades([*x, *y])
    cloud = Series(label="a record", style=0, x=tuple(x), y=tuple(y), form="points")
    return Panel(
        title=name, x_label="original", y_label="released", series=(cloud,), x_log=log, y_log=log, diagonal=True
    )
