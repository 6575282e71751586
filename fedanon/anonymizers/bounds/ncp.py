r"""The least loss of cells (NCP) with at least k records each, from below.

Where the search has no time, the bound is that of the smallest boxes: whatever class a record is in, the cell holds k
records, so it loses at least as much as the smallest box of k records around this one. It holds for every method whose
cells hold k records, classes or not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedanon.anonymizers.bounds.generation import ROOTS
from fedanon.types import AnyArray, FloatArray, IndexArray


@dataclass
class BoxPricing:
    """Groups of k records in cells; see :class:`~fedanon.anonymizers.bounds.generation.Pricing`.

    Parameters
    ----------
    records : :class:`~fedanon.anonymizers.anneal._costs.NcpCosts`.
    near : near records of every record, itself apart.
    deadline : until when the smallest boxes are searched for; those left keep the distance to their nearest.
    """

    records: Any
    near: AnyArray
    k: int
    deadline: float
    nodes: int = 20

    @cached_property
    def start(self) -> FloatArray:
        """Loss of the smallest box of k records around every record, from below."""
        from fedanon.anonymizers.bounds._boxes import group_costs, smallest_boxes

        most = group_costs(self.records, self._groups(np.zeros(len(self.near)))[0]) / self.k
        low = np.zeros(len(self.near))
        for begin in range(0, len(low), ROOTS):
            if time.perf_counter() > self.deadline:
                break
            smallest_boxes(self.records, most, self.k, begin, min(begin + ROOTS, len(low)), self.nodes, low)
        return low

    @cached_property
    def scale(self) -> FloatArray:
        """The least change of a price that matters."""
        return np.asarray(0.5 * self.start + 0.05 * self.start.mean() + 1e-12)

    def _groups(self, prices: FloatArray) -> tuple[IndexArray, FloatArray]:
        from fedanon.anonymizers.bounds._boxes import near_boxes

        groups, value = np.empty((len(prices), self.k), dtype=np.int64), np.empty(len(prices))
        near_boxes(self.records, prices, self.near, 20, groups, value)
        return groups, value

    def costs(self, members: IndexArray) -> FloatArray:
        """k times the loss of each group's cell."""
        from fedanon.anonymizers.bounds._boxes import group_costs

        return np.asarray(group_costs(self.records, members))

    def quick(self, prices: FloatArray) -> IndexArray:
        """The best boxes among near records; those that undercut, or all on the first call."""
        groups, value = self._groups(prices)
        return groups if prices is self.start else groups[value < 0]

    def sort(self, prices: FloatArray) -> BoxSearch:
        """Branch and bound over boxes."""
        return BoxSearch(self, prices)


class BoxSearch:
    """See :class:`~fedanon.anonymizers.bounds.generation.Search`."""

    def __init__(self, pricing: BoxPricing, prices: FloatArray) -> None:
        self.order = np.argsort(prices, kind="stable")
        self.low = np.zeros(len(prices))
        self._pricing = pricing
        records = pricing.records
        self._records = records._replace(points=np.ascontiguousarray(records.points[self.order]))
        self._prices = prices[self.order]
        self._least = pricing.start[self.order]

    def price(self, begin: int, end: int, slack: float) -> IndexArray:
        """Groups with roots ``begin`` to ``end``."""
        from fedanon.anonymizers.bounds._boxes import price_boxes

        k, nodes = self._pricing.k, self._pricing.nodes
        groups = np.empty((end - begin + 1, k), dtype=np.int64)
        found = price_boxes(self._records, self._prices, self._least, k, begin, end, slack, nodes, self.low, groups)
        return groups[:found]
