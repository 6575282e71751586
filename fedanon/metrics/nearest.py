"""Linkage of numeric records to their originals: the chance that one's own is among the nearest."""

from __future__ import annotations

import numpy as np

from fedanon.data.groups import Groups
from fedanon.types import BoolArray, FloatArray, IndexArray


def link_chances(
    original: FloatArray, published: FloatArray, rows: IndexArray, *, most: int = 1, gap: FloatArray | None = None
) -> FloatArray:
    r"""Return, for every published record, the chance that its own original is among the ``most`` nearest to it.

    If a originals are nearer than its own and t are as near (itself included), with ties broken by chance, that is
    :math:`\max(0, \min(1, (most - a) / t))`.

    Parameters
    ----------
    original : one row per record, in units in which columns compare; NaN where missing.
    published : of the records ``rows``, in the same units.
    rows : the row of each published record's own original.
    most : how many of the nearest are looked at.
    gap : squared distance in every column where one of two values is missing, and not both; 0 by default.
    """
    from fedanon.metrics._nearest import count_nearer

    # along the column with the most values the fewest originals are within reach
    values = [len(np.unique(column)) for column in original.T]
    order = np.argsort(values, kind="stable")[::-1]
    x = np.where(np.isnan(original), np.inf, original)[:, order]
    groups = Groups.equal_rows(x)
    distinct = np.ascontiguousarray(original[groups.first_rows][:, order])
    known = int((~np.isnan(distinct[:, 0])).sum())
    gaps = np.zeros(original.shape[1]) if gap is None else np.asarray(gap, dtype=np.float64)[order]
    own = groups.labels[rows].astype(np.int64)
    y = np.ascontiguousarray(published[:, order])
    nearer, tied = count_nearer(distinct, groups.sizes, known, y, own, gaps, most)
    return np.where(nearer >= most, 0.0, np.clip((most - nearer) / np.maximum(tied, 1), 0.0, 1.0))


def stands_alone(points: FloatArray, rows: IndexArray, reach: float) -> BoolArray:
    """Return which of some records have no other record within ``reach``."""
    from fedanon.metrics._nearest import has_neighbor

    widest = int(np.argmax([len(np.unique(column)) for column in points.T]))
    order = np.argsort(points[:, widest], kind="stable")
    place = np.empty(len(points), dtype=np.int64)
    place[order] = np.arange(len(points))
    ordered = np.ascontiguousarray(np.roll(points[order], -widest, axis=1))
    return np.asarray(~has_neighbor(ordered, place[rows], reach))
