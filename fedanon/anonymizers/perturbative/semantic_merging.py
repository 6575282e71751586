"""Semantic data recoding on key combinations: rare ones take the values of the nearest."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.perturbative.keys import ROUNDING
from fedanon.data.hierarchy import FloatArray, IntArray

#: distances of one combination, given by number, to all
Distances = Callable[[int], FloatArray]


def merge_rare(people: FloatArray, k: int, distances: Distances) -> IntArray:
    """The combination whose values each combination takes.

    The rarest combination with fewer than k people takes the values of its nearest one, of equally near ones the
    rarest (Navarro-Arribas & Torra; seed 004, section 4.2.1); so on until all that are left have k people. Ties are
    decided by number.
    """
    weight = people.astype(np.float64)
    takes = np.arange(len(people), dtype=np.int32)
    alive = np.ones(len(people), dtype=bool)
    queue = [(float(weight[i]), i) for i in np.flatnonzero(weight < k - ROUNDING).tolist()]
    heapq.heapify(queue)
    while queue:
        count, rare = heapq.heappop(queue)
        if not alive[rare] or count != weight[rare]:
            continue
        alive[rare] = False
        nearest = _nearest(distances(rare), weight, alive)
        takes[rare] = nearest
        weight[nearest] += weight[rare]
        if weight[nearest] < k - ROUNDING:
            heapq.heappush(queue, (float(weight[nearest]), nearest))
    return _ends(takes)


def _nearest(distance: FloatArray, weight: FloatArray, alive: NDArray[np.bool_]) -> int:
    distance[~alive] = np.inf
    # sums of the same terms in another order differ in the last bits
    near = np.flatnonzero(distance <= distance.min() + ROUNDING)
    return int(near[np.argmin(weight[near])])


def _ends(takes: IntArray) -> IntArray:
    """Where the chain of every combination ends."""
    while True:
        further = takes[takes]
        if np.array_equal(further, takes):
            return takes
        takes = further
