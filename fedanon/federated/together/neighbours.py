"""Regions that are near: whose common box loses little more than their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray, IntArray
from fedanon.federated.together.axes import Axis

#: two regions a line
Pairs = NDArray[np.int64]
#: neighbours that are known of a region
N_NEAR = 30
#: matchings by which pairs are tested
N_MATCHINGS = 6


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The neighbours of every region.

    Parameters
    ----------
    low, high : boxes, with codes in place of bins, in the same order.
    losses : of every axis, by the codes of the lowest and the highest bin.
    near : other regions, the nearest first.
    growth : by how much the two boxes, each for one person, lose more as one.
    """

    low: IntArray
    high: IntArray
    losses: FloatArray
    near: NDArray[np.int64]
    growth: FloatArray

    @classmethod
    def of(cls, axes: Sequence[Axis], low: IntArray, high: IntArray) -> Neighbours:
        """Of boxes; the time grows with the square of their number."""
        low, high, losses = _coded(axes, low, high)
        every, count = np.arange(len(axes)), min(N_NEAR, len(low) - 1)
        own = losses[every, low, high].sum(axis=1)
        near = np.zeros((len(low), count), dtype=np.int64)
        growth = np.zeros((len(low), count))
        for i in range(len(low)):
            hull = losses[every, np.minimum(low, low[i]), np.maximum(high, high[i])].sum(axis=1)
            more = 2 * hull - own - own[i]
            more[i] = np.inf
            near[i] = np.argsort(more, kind="stable")[:count]
            growth[i] = more[near[i]]
        return cls(low, high, losses, near, growth)

    def matchings(self) -> list[Pairs]:
        """Pairs of near regions: in each matching no region is in two pairs, and no pair is in two matchings."""
        one = np.repeat(np.arange(len(self.near)), self.near.shape[1])
        pairs, at = np.unique(np.sort(np.column_stack([one, self.near.ravel()]), axis=1), axis=0, return_index=True)
        left = pairs[np.argsort(self.growth.ravel()[at], kind="stable")]
        found = []
        for _ in range(N_MATCHINGS):
            taken = _matched(left, len(self.near))
            if taken.any():
                found.append(left[taken])
            left = left[~taken]
        return found


def _matched(pairs: Pairs, n_regions: int) -> NDArray[np.bool_]:
    """Which pairs are taken, the first ones first, if no region may be in two."""
    free, taken = [True] * n_regions, np.zeros(len(pairs), dtype=bool)
    for position, (one, other) in enumerate(pairs.tolist()):
        if free[one] and free[other]:
            taken[position], free[one], free[other] = True, False, False
    return taken


def _coded(axes: Sequence[Axis], low: IntArray, high: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Boxes in terms of the ends that occur, and the loss between any two of these on every axis."""
    ends = [np.unique(np.concatenate([low[:, a], high[:, a]])) for a in range(len(axes))]
    most = max(len(found) for found in ends)
    losses = np.zeros((len(axes), most, most))
    for a, (axis, found) in enumerate(zip(axes, ends, strict=True)):
        first, last = np.triu_indices(len(found))
        losses[a, first, last] = axis.loss(found[first], found[last])
    code = [(np.searchsorted(e, low[:, a]), np.searchsorted(e, high[:, a])) for a, e in enumerate(ends)]
    return np.column_stack([lo for lo, _ in code]), np.column_stack([hi for _, hi in code]), losses
