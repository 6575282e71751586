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

from fedanon.types import AnyArray, FloatArray, IndexArray

#: near records of a record among which boxes are tried quickly
NEAR = 30
#: records whose smallest box is searched for between two looks at the clock
STEP = 64


@dataclass
class BoxPricing:
    """Groups of k records in cells; see :class:`~fedanon.anonymizers.bounds.generation.Pricing`.

    Parameters
    ----------
    records : :class:`~fedanon.anonymizers.anneal._costs.NcpCosts` of the distinct records.
    counts : how often each occurs.
    near : near records of every record, itself apart, as often as they occur.
    deadline : until when the smallest boxes are searched for; those left keep the distance to their nearest.
    """

    records: Any
    counts: AnyArray
    near: AnyArray
    k: int
    deadline: float
    nodes: int = 20
    roots: int = 512

    @cached_property
    def start(self) -> FloatArray:
        """Loss of the smallest box of k records around every record, from below."""
        from fedanon.anonymizers.bounds._boxes import group_costs, smallest_boxes

        most = group_costs(self.records, self._groups(np.zeros(len(self.near)))[0]) / self.k
        low = np.zeros(len(self.near))
        for begin in range(0, len(low), STEP):
            if time.perf_counter() > self.deadline:
                break
            smallest_boxes(self.records, self.counts, most, self.k, begin, min(begin + STEP, len(low)), self.nodes, low)
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

    @cached_property
    def taxonomies(self) -> Any:
        """The nodes of the categorical columns, those first whose smallest step up loses most."""
        from fedanon.anonymizers.bounds._cells import TaxonomyNodes

        columns = range(self.records.numeric, self.records.points.shape[1])
        found = {column: _intervals(self.records, column) for column in columns}
        order = sorted(found, key=lambda column: -min((loss for *_, loss in found[column] if loss > 0), default=np.inf))
        nodes = [node for column in order for node in found[column]]
        first, last, loss = np.array(nodes, dtype=np.float64).reshape(-1, 3).T
        start = np.cumsum([0, *(len(found[column]) for column in order)])
        return TaxonomyNodes(np.array(order, dtype=np.int64), start, first.copy(), last.copy(), loss.copy())

    def sort(self, prices: FloatArray) -> BoxSearch:
        """Branch and bound over boxes."""
        return BoxSearch(self, prices)


def box_pricing(records: Any, counts: AnyArray, near: AnyArray, k: int, deadline: float) -> BoxPricing:
    """Of distinct records, how often each occurs, and the near ones of each."""
    from fedanon.anonymizers.bounds._boxes import near_rows

    counts = counts.astype(np.int64)
    width = min(max(NEAR, 3 * k), int(np.minimum(counts, k).sum()) - 1)
    rows = np.empty((len(counts), width), dtype=np.int64)
    near_rows(near, counts, k, rows)
    return BoxPricing(records, counts, rows, k, deadline)


class BoxSearch:
    """See :class:`~fedanon.anonymizers.bounds.generation.Search`."""

    def __init__(self, pricing: BoxPricing, prices: FloatArray) -> None:
        self.order = np.argsort(prices, kind="stable")
        self.low = np.zeros(len(prices))
        self._pricing = pricing
        records = pricing.records
        self._records = records._replace(points=np.ascontiguousarray(records.points[self.order]))
        self._counts = pricing.counts[self.order]
        self._prices = prices[self.order]
        self._least = pricing.start[self.order]

    def price(self, begin: int, end: int, slack: float) -> IndexArray:
        """Groups with roots ``begin`` to ``end``."""
        from fedanon.anonymizers.bounds._cells import price_cells

        pricing = self._pricing
        groups = np.empty((end - begin, pricing.k), dtype=np.int64)
        found = price_cells(
            self._records,
            pricing.taxonomies,
            self._prices,
            self._counts,
            self._least,
            pricing.k,
            begin,
            end,
            slack,
            pricing.nodes,
            self.low,
            groups,
        )
        return groups[:found]


def _intervals(records: Any, column: int) -> list[tuple[float, float, float]]:
    """First and last leaf and loss of every node of a taxonomy that is the smallest one over the values at hand."""
    from fedanon.anonymizers.bounds._cells import smallest_nodes

    return [tuple(node) for node in smallest_nodes(records, column, np.unique(records.points[:, column]))]
