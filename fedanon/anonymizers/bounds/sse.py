r"""The least squared error of groups of at least k numeric records, from below.

Where the search has no time, the bound is that of the nearest records: :math:`SSE(G) = \frac{1}{2} \sum_{i \in G}
\frac{1}{k} \sum_{j \in G} d_{ij}^2` for a group of k, and a record's k distances, its own included, are at least its k
smallest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fedanon.types import AnyArray, FloatArray, IndexArray

#: triples of records, the penalty of each, where the triples of every record begin, and these
Cuts = tuple[IndexArray, FloatArray, IndexArray, IndexArray]


@dataclass
class SquaredErrors:
    """Groups of k points; see :class:`~fedanon.anonymizers.bounds.generation.Pricing`."""

    points: FloatArray
    k: int
    nodes: int = 3000
    roots: int = 64
    center: FloatArray = field(init=False)
    counts: IndexArray = field(init=False)

    def __post_init__(self) -> None:
        self.center = self.points.copy()
        self.counts = np.ones(len(self.points), dtype=np.int64)

    @cached_property
    def _nearest(self) -> tuple[AnyArray, FloatArray]:
        """Near records of every record, itself apart, and the squared distances."""
        from fedanon.anonymizers.anneal._tree import nearest_points

        n = len(self.points)
        width = min(max(48, 6 * self.k), n - 1)
        near, distance = np.full((n, width), -1, dtype=np.int32), np.full((n, width), np.inf)
        nearest_points(self.points, np.zeros(n, dtype=bool), near, distance)
        return near, distance

    @cached_property
    def start(self) -> FloatArray:
        """Half the mean squared distance of a record to its k nearest, itself among them."""
        _, distance = self._nearest
        return np.asarray(0.5 * distance[:, : self.k - 1].sum(axis=1) / self.k)

    @cached_property
    def scale(self) -> FloatArray:
        """The least change of a price that matters: half the first price, but not nothing for equal records."""
        return np.asarray(0.5 * self.start + 1e-3 * self.start.mean() + 1e-12)

    def costs(self, members: IndexArray) -> FloatArray:
        """Squared distances to the mean."""
        points = self.points[members]
        return np.asarray(np.square(points - points.mean(axis=1, keepdims=True)).sum(axis=(1, 2)))

    def quick(self, prices: FloatArray) -> IndexArray:
        """The k - 1 cheapest round every record's center; those that undercut, or all on the first call."""
        from fedanon.anonymizers.bounds._pricing import near_groups

        groups, value = np.empty((len(prices), self.k), dtype=np.int64), np.empty(len(prices))
        near_groups(self.points, prices, self._nearest[0], self.center, 4, groups, value)
        return groups if prices is self.start else groups[value < 0]

    def extend(self, members: IndexArray, prices: FloatArray, below: float) -> list[IndexArray]:
        """Larger groups that grow from these and whose reduced cost is below ``below``."""
        from fedanon.anonymizers.bounds._pricing import extend_groups

        largest = 2 * self.k - 1
        room = len(members) * (self.k - 1)
        groups, sizes = np.empty((room, largest), dtype=np.int64), np.empty(room, dtype=np.int64)
        reduced = np.empty(room)
        count = extend_groups(self.points, prices, self._nearest[0], members, largest, groups, sizes, reduced)
        kept = np.flatnonzero(reduced[:count] < below)
        return [np.sort(groups[j, : sizes[j]]) for j in kept]

    def sort(self, prices: FloatArray) -> RootSearch:
        """Branch and bound over the lightest cliques."""
        return RootSearch(self, prices, self.k, no_cuts(len(prices)))


def no_cuts(n: int) -> Cuts:
    """No triple is penalized."""
    empty = np.empty(0, dtype=np.int64)
    return np.empty((0, 3), dtype=np.int64), np.empty(0), np.zeros(n + 1, dtype=np.int64), empty


class RootSearch:
    """See :class:`~fedanon.anonymizers.bounds.generation.Search`; for groups of any ``size``, and with cuts."""

    def __init__(self, pricing: SquaredErrors, prices: FloatArray, size: int, cuts: Cuts) -> None:
        self.order = np.argsort(prices, kind="stable")
        self.low = np.zeros(len(prices))
        self._nodes, self._size, self._cuts = pricing.nodes, size, cuts
        self._points = np.ascontiguousarray(pricing.points[self.order])
        self._prices = prices[self.order]
        self._least = np.full((len(prices), max(size - 2, 1)), np.inf)

    def price(self, begin: int, end: int, slack: float, each: int = 1) -> IndexArray:
        """Groups with roots ``begin`` to ``end``: the best of each root, or several that cost hardly more."""
        from fedanon.anonymizers.bounds._pricing import price_roots

        groups = np.empty((each * (end - begin), self._size), dtype=np.int64)
        found = price_roots(
            self._points,
            self._prices,
            self._size,
            begin,
            end,
            slack,
            self._nodes,
            self._cuts,
            self._least,
            self.low,
            groups,
        )
        return groups[:found]
