"""Boxes: what a box of coordinates loses, how far its published cells reach, and whom it grows by least.

In numpy, for streams of people, where a class starts seldom: a gateway of theirs needs no compiler, whose memory is
more than all its people take. Streams of records ask at every record, and have kernels
(:mod:`fedanon.streams._buffer`).
"""

from __future__ import annotations

import numpy as np

from fedanon.streams.publication import Box
from fedanon.streams.space import Space, leaf_losses
from fedanon.types import BoolArray, FloatArray, IndexArray


def cell_losses(space: Space, c: int, low: FloatArray, high: FloatArray) -> FloatArray:
    """Loss of the cells low..high of a column."""
    if space.spans.scale[c] > 0.0:
        return np.asarray(np.minimum((high - low) * space.spans.scale[c], space.spans.cap))
    if space.start[c] >= 0:
        return np.asarray(space.table[space.start[c] + low.astype(int) * space.leaves[c] + high.astype(int)])
    return leaf_losses(space.spans, c, low.astype(int), high.astype(int))


def box_losses(space: Space, low: FloatArray, high: FloatArray) -> FloatArray:
    """Loss of boxes, one per row of ``low`` and ``high``: the sum over their columns."""
    total = np.zeros(len(low))
    for c in range(space.width):
        total += cell_losses(space, c, low[:, c], high[:, c])
    return total


def loss_of(space: Space, box: Box) -> float:
    """Mean loss of a box over the quasi-identifiers, from 0 to 1 (NCP)."""
    return float(box_losses(space, np.array([box.low]), np.array([box.high]))[0]) / space.width


def widened(space: Space, label: int, low: FloatArray, high: FloatArray) -> Box:
    """The box of a class, widened to all that its published cells cover: the whole taxonomy node."""
    low, high = low.copy(), high.copy()
    for c in np.flatnonzero((space.spans.scale == 0.0) & (low < high)).tolist():
        leaves = np.arange(space.leaves[c], dtype=np.float64)
        loss = cell_losses(space, c, low[c : c + 1], high[c : c + 1])[0]
        below, above = leaves[leaves <= low[c]], leaves[leaves >= high[c]]
        to_the_left = cell_losses(space, c, below, np.full(len(below), high[c])) == loss
        to_the_right = cell_losses(space, c, np.full(len(above), low[c]), above) == loss
        low[c], high[c] = below[to_the_left].min(), above[to_the_right].max()
    return Box(label, tuple(low.tolist()), tuple(high.tolist()))


def grow(
    space: Space, low: FloatArray, high: FloatArray, seed: int, allowed: BoolArray, size: int
) -> tuple[IndexArray, FloatArray, FloatArray, float]:
    """The seed and the allowed boxes that enlarge the common one least, ``size`` in all.

    Returns their places, the common box and its loss; no places if there are not enough.
    """
    free = allowed.copy()
    free[seed] = False
    others = np.flatnonzero(free)
    least, most = low[seed].copy(), high[seed].copy()
    if len(others) < size - 1:
        return others[:0], least, most, np.inf
    members = [seed]
    for _ in range(size - 1):
        losses = box_losses(space, np.minimum(low[others], least), np.maximum(high[others], most))
        at = int(np.argmin(losses))
        found = int(others[at])
        members.append(found)
        others = np.delete(others, at)
        np.minimum(least, low[found], out=least)
        np.maximum(most, high[found], out=most)
    return np.array(members), least, most, float(box_losses(space, least[None], most[None])[0])
