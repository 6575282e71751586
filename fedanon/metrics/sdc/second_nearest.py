"""Record linkage in which the second nearest original counts as well as the nearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.numeric_pair import deviations, numeric_pair

#: how many distances are held in memory at once
_CHUNK = 4_000_000


def linked_among_two(original: FloatArray, published: FloatArray) -> FloatArray:
    r"""Chance of every record that its own original is the nearest or second nearest to what is published of it.

    With a originals nearer than the own one and t as near (itself included), ties being broken by chance, that is
    :math:`\max(0, \min(1, (2 - a) / t))`.
    """
    originals = Groups.equal_rows(original)
    pairs = Groups.equal_rows(np.column_stack([published, originals.labels]))
    x, y = original[originals.first_rows], published[pairs.first_rows]
    own = originals.labels[pairs.first_rows]
    chance = np.empty(pairs.count)
    step = max(1, _CHUNK // len(x))
    for start in range(0, pairs.count, step):
        part = slice(start, start + step)
        chance[part] = _chances(_squared_distances(y[part], x), own[part], originals.sizes)
    return chance[pairs.labels]


def _squared_distances(left: FloatArray, right: FloatArray) -> FloatArray:
    squared = np.zeros((len(left), len(right)))
    for mine, theirs in zip(left.T, right.T, strict=True):
        squared += np.square(mine[:, None] - theirs)
    return squared


def _chances(distance: FloatArray, own: NDArray[np.int32], sizes: NDArray[np.int64]) -> FloatArray:
    mine = distance[np.arange(len(own)), own][:, None]
    nearer, tied = (distance < mine) @ sizes, (distance == mine) @ sizes
    return np.asarray(np.clip((2 - nearer) / tied, 0.0, 1.0))


@metric("dld_two", title="DLD, nearest two", better="lower")
def dld_two(table: Table, release: Release) -> float:
    """Share of the released records whose own original is the nearest or second nearest, by standardised numbers.

    Morais 2022, section 3.2, on whole records: Euclidean distance over the numeric quasi-identifiers in standard
    deviations of the originals, expectation among ties. ``dld`` counts the nearest only.
    """
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    spread = deviations(pair.original)
    varying = spread > 0
    if not varying.any():
        return np.nan
    x, y = (points[:, varying] / spread[varying] for points in (pair.original, pair.published))
    return float(linked_among_two(x, y).mean())
