"""Top-down splits under a privacy model: a region is cut only if the model holds in all parts.

Regions are cut breadth-first, all open ones in one pass, so that a model judges thousands of parts at once. A method
gives a compiled function that proposes a cut for each region; where a model rejects it, the next column is proposed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fedanon.anonymizers.base import publish_smallest_cells
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.privacy.base import Claim, Rows
from fedanon.privacy.combined import Combined
from fedanon.types import AnyArray, BoolArray, IndexArray

Holds = Callable[[Groups], BoolArray]
#: from the order of the rows and the starts, ends and ranks of regions: a new order, ends of parts, number of parts
Propose = Callable[[IndexArray, IndexArray, IndexArray, IndexArray], tuple[IndexArray, IndexArray, IndexArray]]


def judge_of_parts(table: Table, claim: Claim) -> Holds:
    """Whether the monotone models of a claim hold; the others are left to the repair."""
    assert isinstance(claim, Combined)
    evaluator = claim.monotone().evaluator(Rows.from_table(table), np.ones(len(table), dtype=bool))
    return lambda groups: evaluator.satisfied(groups, lambda: publish_smallest_cells(table, groups))


class OpenRegions(NamedTuple):
    """Stretches of the order that may still be cut.

    Parameters
    ----------
    start, end : where each begins and ends.
    rank : how many columns were tried in vain.
    """

    start: IndexArray
    end: IndexArray
    rank: IndexArray

    def select(self, chosen: AnyArray) -> OpenRegions:
        """Some of them."""
        return OpenRegions(self.start[chosen], self.end[chosen], self.rank[chosen])


def split_while(order: IndexArray, propose: Propose, holds: Holds, *, columns: int, pool: bool) -> IndexArray:
    """Region of every row.

    Parameters
    ----------
    order : all rows in a canonical order.
    propose : cuts every region, or reports that it cannot.
    holds : in which of the proposed parts the model holds.
    columns : how many proposals a region gets.
    pool : whether parts for which the model does not hold may be pooled.
    """
    order = order.copy()
    ends: list[IndexArray] = []
    zero = np.zeros(1, dtype=np.int64)
    regions = OpenRegions(zero, np.array([len(order)]), zero)
    while len(regions.start):
        proposed, part_ends, counts = propose(order, *regions)
        parts = _Parts.from_proposal(proposed, regions, part_ends, counts)
        cut = parts.accepted(holds, pool)
        children = parts.arrange(order, cut)
        again = ~cut & (counts > 0) & (regions.rank + 1 < columns)
        ends.append(regions.end[~cut & ~again])
        waiting = regions.select(again)
        regions = _joined(children, waiting._replace(rank=waiting.rank + 1))
    stops = np.sort(np.concatenate(ends))
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0))
    return labels


def _joined(first: OpenRegions, second: OpenRegions) -> OpenRegions:
    both = OpenRegions(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))
    return both.select(np.argsort(both.start))


class _Parts:
    """The parts of the regions for which a cut is proposed; parts may be pooled before they are judged."""

    def __init__(self, n: int, rows: IndexArray, part: IndexArray, region: IndexArray, regions: OpenRegions) -> None:
        self.n, self.rows, self.part = n, rows, part  # number of all rows; those in a part, and their parts
        self.region = region  # the region of every part
        self.target = np.arange(len(region))  # the part with which each is pooled
        self.regions = regions

    @classmethod
    def from_proposal(
        cls, proposed: IndexArray, regions: OpenRegions, part_ends: IndexArray, counts: IndexArray
    ) -> _Parts:
        of_part = np.repeat(np.arange(len(counts)), counts)
        kept = counts[of_part] > 1
        region, ends = of_part[kept], part_ends[kept]
        first = np.flatnonzero(np.diff(region, prepend=-1))
        starts = np.concatenate([[0], ends[:-1]])[: len(ends)]
        starts[first] = regions.start[region[first]]
        sizes = ends - starts
        part = np.repeat(np.arange(len(region)), sizes)
        at = np.arange(len(part)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(starts, sizes)
        return cls(len(proposed), proposed[at], part, region, regions)

    def accepted(self, holds: Holds, pool: bool) -> BoolArray:
        """Which regions may be cut: their parts are at least two, and the model holds in all."""
        satisfied = self._satisfied(holds)
        if pool and not satisfied.all():
            self._pool(self._first_failing(satisfied), satisfied)
            satisfied = self._satisfied(holds)
            self._pool(self._smallest_satisfied(satisfied), satisfied)
            satisfied = self._satisfied(holds)
        count = len(self.regions.start)
        failing = np.bincount(self.region[~satisfied], minlength=count)
        parts = np.bincount(self.region[np.unique(self.target)], minlength=count)
        return np.asarray((parts > 1) & (failing == 0))

    def arrange(self, order: IndexArray, cut: BoolArray) -> OpenRegions:
        """Write the parts of the regions that are cut into ``order``; they are new regions."""
        chosen = cut[self.region[self.part]]
        rows, part = self.rows[chosen], self.target[self.part[chosen]]
        by_part = np.argsort(part, kind="stable")
        # targets ascend with their regions, and a region's parts fill exactly its stretch
        names, first, sizes = np.unique(part[by_part], return_index=True, return_counts=True)
        region = self.region[names]
        offset = first - first[np.searchsorted(region, region)]
        start = self.regions.start[region] + offset
        at = np.arange(len(rows)) - np.repeat(first, sizes) + np.repeat(start, sizes)
        order[at] = rows[by_part]
        return OpenRegions(start, start + sizes, np.zeros(len(start), dtype=np.int64))

    def _satisfied(self, holds: Holds) -> BoolArray:
        """For every part, whether the model holds in what it is pooled with."""
        names, dense = np.unique(self.target, return_inverse=True)
        labels = np.full(self.n, -1, dtype=np.int32)
        labels[self.rows] = dense[self.part]
        return holds(Groups(labels, len(names)))[dense]

    def _pool(self, target_of_region: IndexArray, satisfied: BoolArray) -> None:
        """The failing parts of a region join one of its parts, if it has one (-1: none)."""
        wanted = target_of_region[self.region]
        self.target = np.where(satisfied | (wanted < 0), self.target, wanted)

    def _first_failing(self, satisfied: BoolArray) -> IndexArray:
        found = np.full(len(self.regions.start), -1, dtype=np.int64)
        failing = np.flatnonzero(~satisfied)[::-1]
        found[self.region[failing]] = self.target[failing]
        return found

    def _smallest_satisfied(self, satisfied: BoolArray) -> IndexArray:
        sizes = np.bincount(self.target[self.part], minlength=len(self.region))
        good = np.flatnonzero(satisfied)
        good = good[np.argsort(-sizes[self.target[good]], kind="stable")]
        found = np.full(len(self.regions.start), -1, dtype=np.int64)
        found[self.region[good]] = self.target[good]
        return found
