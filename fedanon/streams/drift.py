"""Drift: how far what is published now has moved from what was published before, column by column.

The population stability index (PSI) compares the shares of bins: the sum of (p - q) ln(p / q). By custom, below .1 is
stable and above .25 has shifted. It is computed from published rows alone; a generalized cell is spread evenly over
the bins it covers, so drift inside cells does not show.
"""

from __future__ import annotations

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes, Numbers
from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Categorical, FreeText, Numeric
from fedanon.data.table import texts
from fedanon.release.release import Release
from fedanon.types import FloatArray

#: equal parts of the declared range of a number
BINS = 10
#: least share of a bin, so that an empty one does not make the index infinite
LEAST_SHARE = 1e-4


def stability_index(before: FloatArray, now: FloatArray) -> float:
    """PSI of two distributions over the same bins."""
    p, q = np.maximum(before, LEAST_SHARE), np.maximum(now, LEAST_SHARE)
    p, q = p / p.sum(), q / q.sum()
    return float(((q - p) * np.log(q / p)).sum())


def drift_by_column(before: Release, now: Release, *, skip: str = "") -> dict[str, float]:
    """PSI of every published column with declared values or a declared range; ``skip`` names that of the time."""
    names = [name for name in before.schema.published if name != skip]
    shares = {name: (column_shares(before, name), column_shares(now, name)) for name in names}
    return {name: stability_index(p, q) for name, (p, q) in shares.items() if p is not None and q is not None}


def column_shares(release: Release, name: str) -> FloatArray | None:
    """Share of the published rows in every bin of a column; None where nothing declares bins."""
    attribute = release.schema[name]
    if isinstance(attribute, FreeText) or (isinstance(attribute, Numeric) and not attribute.has_range):
        return None
    if name not in release.cells:
        return _carried_shares(release, attribute)
    labels = release.groups.labels[~release.suppressed]
    weights = np.bincount(labels, minlength=release.groups.count) / max(len(labels), 1)
    return np.asarray(weights @ _spread(release.cells[name], attribute))


def _carried_shares(release: Release, attribute: Numeric | Categorical) -> FloatArray:
    column = release.passthrough.loc[~release.suppressed, attribute.name].dropna()
    if isinstance(attribute, Numeric):
        values = column.to_numpy(dtype=np.float64)
        counts = np.histogram(values, bins=BINS, range=(attribute.low, attribute.high))[0]
    else:
        found = texts(column).value_counts()
        leaves = attribute.hierarchy.labels[: attribute.hierarchy.n_leaves]
        counts = np.array([found.get(leaf, 0) for leaf in leaves if leaf != MISSING])
    return np.asarray(counts / max(counts.sum(), 1))


def _spread(cells: Cells, attribute: Numeric | Categorical) -> FloatArray:
    """The share of every cell in every bin, one row per cell."""
    if isinstance(cells, Nodes):
        leaf = np.arange(cells.hierarchy.n_leaves)
        first, last = cells.hierarchy.first[cells.nodes], cells.hierarchy.last[cells.nodes]
        inside = (leaf >= first[:, None]) & (leaf <= last[:, None])
        return np.asarray(inside / inside.sum(axis=1, keepdims=True))
    assert isinstance(attribute, Numeric)
    low, high = (cells.low, cells.high) if isinstance(cells, Intervals) else (cells.values, cells.values)
    assert isinstance(cells, Intervals | Numbers)
    edges = np.linspace(attribute.low, attribute.high, BINS + 1)
    width = (attribute.high - attribute.low) / BINS
    # a point is an interval of no length: give it the smallest that lies in one bin
    ends = np.where(high > low, high, np.nextafter(low, np.inf))
    overlap = np.minimum(ends[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
    share = np.clip(overlap, 0.0, width)
    empty = share.sum(axis=1) == 0.0  # at the upper end of the range
    share[empty, -1] = 1.0
    return np.asarray(share / share.sum(axis=1, keepdims=True))
