r"""A partition from prices: dive into the linear program, then improve one region after the other.

**Diving.** The linear program over the priced classes, cuts included, comes within a fraction of a per cent of the best
partition and takes most of its classes nearly whole. The largest shares are taken as whole, their records leave, and
the program is solved again for the rest. Records that no class is left for join the class that grows least.

**Regions.** Prices p and penalties q of a proved bound leave no class a negative reduced cost, so that

.. math:: \sum_G c_G - bound = \sum_G (c_G - p(G) + q(G)) + (\text{what the cuts leave unused}) .

The reduced costs say where a partition is off. A region, the classes nearest to one that costs much more than its
prices, can gain at most the sum of its own, and no class above that sum can take part in the gain. What is left is an
integer program of some hundred classes, solved in a moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedanon.anonymizers import progress
from fedanon.anonymizers.bounds.cuts import CutPool, Tightened, add_groups
from fedanon.anonymizers.bounds.sse import SquaredErrors
from fedanon.anonymizers.integer_program import choose_classes
from fedanon.data.groups import Groups
from fedanon.types import AnyArray, BoolArray, FloatArray, IndexArray, IntArray, Rng

#: classes per record that a dive chooses from
DIVING = 6
#: shares from which a class is taken as whole: always, and while no more than TAKEN of all classes were taken
WHOLE, LIKELY, TAKEN = 0.999, 0.3, 0.05
#: what leaving a record out costs a dive, in prices
LEFT_OUT = 4.0
#: records of the first region; it grows by the one factor where it was solved at once, and shrinks by the other where
#: more than HARD nodes were needed
RECORDS, GROW, SHRINK, HARD = 120, 1.1, 0.7, 100
#: seconds per region; or branch-and-bound nodes, records at most, and number of regions where all machines must find
#: the same: beyond some 400 records a region may take a minute
LONGEST, NODES, LARGEST, REGIONS = 3.0, 100, 400, 60
#: a gap that is no longer worth closing, as a share of the cost
CLOSE = 1e-6


@dataclass
class PriceRounding:
    """Partitions into priced classes.

    Parameters
    ----------
    pricing : what a class costs.
    found : prices, penalties, and the pool of classes; classes are added to it.
    unit : loss per unit of cost, for those who watch.
    """

    pricing: SquaredErrors
    found: Tightened
    unit: float

    def __post_init__(self) -> None:
        triples, penalties, *_ = self.found.cuts()
        self._triples = triples[penalties > 0]

    @property
    def _pool(self) -> CutPool:
        return self.found.pool

    def add(self, labels: IntArray) -> None:
        """Add the classes of a partition to the pool."""
        add_groups(self._pool, self.pricing, _members(labels))

    def cost(self, labels: IntArray) -> float:
        """Squared errors of a partition."""
        self.add(labels)
        return float(self._pool.costs[self._places(labels)].sum())

    def dive(self) -> IntArray | None:
        """Class of every record, by rounding the linear program step by step; None if a record finds no class."""
        from scipy.optimize import linprog

        pool, n, k = self._pool, len(self.pricing.points), self.pricing.k
        left_out = LEFT_OUT * np.maximum(self.found.prices, self.found.prices.mean())
        columns = np.argsort(self.found.reduced(), kind="stable")[: DIVING * n]
        inside, labels, count = np.ones(n, dtype=bool), np.full(n, -1, dtype=np.int32), 0
        while inside.any() and len(columns):
            cover, cuts = self._program(columns, inside, spare=True)
            solved = linprog(
                np.append(pool.costs[columns], left_out[inside]),
                A_eq=cover,
                b_eq=np.ones(cover.shape[0]),
                A_ub=cuts if cuts.shape[0] else None,
                b_ub=np.ones(cuts.shape[0]) if cuts.shape[0] else None,
            )
            if solved.x is None:
                break
            taken = _take(solved.x[: len(columns)], pool.groups[columns], n, max(1, int(TAKEN * n / k)))
            for members in taken:
                labels[members] = count
                count += 1
                inside[members] = False
            if not len(taken):
                break
            columns = columns[_within(pool.groups[columns], inside)]
        return self._complete(labels, np.flatnonzero(inside))

    def improve(self, labels: IntArray, rng: Rng, until: float | None) -> tuple[IntArray, bool]:
        """A partition that costs less, and whether a watcher stopped the search for it.

        Parameters
        ----------
        until : when to end, by :func:`time.perf_counter`; None for a number of regions that is the same everywhere.
        """
        self.add(labels)
        pool, reduced = self._pool, self.found.reduced()
        chosen, size, solved = self._places(labels), float(RECORDS), set[bytes]()
        began, left, total = time.perf_counter(), REGIONS, float(pool.costs[chosen].sum())
        largest = float(LARGEST if until is None else len(labels))
        while left if until is None else time.perf_counter() < until:
            left -= 1
            if total - self.found.bound <= CLOSE * total:
                break
            region = self._region(chosen, reduced, int(size), rng)
            key = np.sort(chosen[region]).tobytes()
            if key in solved:
                size = min(size * GROW, largest)
                if region.all():
                    break
                continue
            solved.add(key)
            better, nodes = self._solve(chosen[region], reduced, until)
            size = min(size * GROW, largest) if nodes <= 1 else size * SHRINK if nodes > HARD else size
            if better is not None:
                chosen = np.append(chosen[~region], better)
                total = float(pool.costs[chosen].sum())
            share = 1 - left / REGIONS if until is None else (time.perf_counter() - began) / max(until - began, 1e-9)
            if not progress.report(min(share, 1.0), total * self.unit):
                return self._labels(chosen), True
        return self._labels(chosen), False

    def _program(self, columns: IndexArray, inside: BoolArray, spare: bool = False) -> tuple[Any, Any]:
        """Which records inside the classes hold, and which cuts they count in; ``spare`` columns leave a record out."""
        from scipy.sparse import csc_array, csr_array, eye_array, hstack

        groups, sizes = self._pool.groups[columns], self._pool.sizes[columns]
        rank = np.cumsum(inside) - 1
        rows, ends = rank[groups[groups >= 0]], np.concatenate([[0], np.cumsum(sizes)])
        cover = csc_array((np.ones(len(rows)), rows, ends), shape=(int(inside.sum()), len(columns)))
        triples = rank[self._triples[inside[self._triples].all(axis=1)]]
        entries = (np.ones(triples.size), (np.repeat(np.arange(len(triples)), 3), triples.ravel()))
        held = csr_array(entries, shape=(len(triples), cover.shape[0])) @ cover
        cuts = csr_array(held >= 2, dtype=np.float64)
        if spare:
            cover = hstack([cover, eye_array(cover.shape[0])], format="csc")
            cuts = hstack([cuts, csr_array((cuts.shape[0], cover.shape[0]))], format="csr")
        return cover, cuts

    def _complete(self, labels: IntArray, left: IndexArray) -> IntArray | None:
        """Put the records that are left into the class with room that grows least; None if there is no room."""
        points, most = self.pricing.points, 2 * self.pricing.k - 1
        if len(labels) > most * (labels.max(initial=-1) + 1):
            return None
        sizes = np.bincount(labels[labels >= 0])
        sums = np.stack([np.bincount(labels[labels >= 0], column[labels >= 0]) for column in points.T], axis=1)
        for record in left:
            growth = np.square(points[record] - sums / sizes[:, None]).sum(axis=1) * sizes / (sizes + 1)
            to = int(np.argmin(np.where(sizes < most, growth, np.inf)))
            labels[record] = to
            sizes[to] += 1
            sums[to] += points[record]
        return labels

    def _region(self, chosen: IndexArray, reduced: FloatArray, records: int, rng: Rng) -> BoolArray:
        """The classes nearest to one that was drawn by its reduced cost, of so many records together."""
        pool, points = self._pool, self.pricing.points
        groups, sizes = pool.groups[chosen], pool.sizes[chosen]
        held = np.where((groups >= 0)[:, :, None], points[groups], 0.0)
        centers = held.sum(axis=1) / sizes[:, None]
        weight = np.maximum(reduced[chosen], 1e-12)
        first = rng.choice(len(chosen), p=weight / weight.sum())
        order = np.argsort(np.square(centers - centers[first]).sum(axis=1), kind="stable")
        region = np.zeros(len(chosen), dtype=bool)
        region[order[np.cumsum(sizes[order]) <= max(records, sizes[first])]] = True
        return region

    def _solve(self, region: IndexArray, reduced: FloatArray, until: float | None) -> tuple[IndexArray | None, float]:
        """The best classes for the records of a region, None if they are no better; nodes it took, or infinity."""
        from scipy.optimize import LinearConstraint

        pool = self._pool
        inside = np.zeros(len(self.pricing.points), dtype=bool)
        members = pool.groups[region]
        inside[members[members >= 0]] = True
        # prices may be a little too high, so that a class costs less than its own: the region's classes stay in
        columns = np.flatnonzero(reduced <= np.maximum(reduced[region], 0.0).sum() + 1e-12)
        columns = columns[_within(pool.groups[columns], inside)]
        cover, cuts = self._program(columns, inside)
        constraints = [LinearConstraint(cover, 1, 1)]
        if cuts.shape[0]:
            constraints.append(LinearConstraint(cuts, -np.inf, 1))
        seconds = None if until is None else max(min(LONGEST, until - time.perf_counter()), 0.01)
        times, nodes = choose_classes(pool.costs[columns], constraints, most=1, gap=CLOSE, seconds=seconds, nodes=NODES)
        if times is None:
            return None, nodes
        better = columns[times > 0]
        gains = pool.costs[better].sum() < pool.costs[region].sum() * (1 - 1e-12)
        return (better if gains else None), nodes

    def _places(self, labels: IntArray) -> IndexArray:
        """Places of the classes of a partition in the pool."""
        pool = self._pool
        place = {
            group[:size].tobytes(): at for at, (group, size) in enumerate(zip(pool.groups, pool.sizes, strict=True))
        }
        return np.array([place[members.tobytes()] for members in _members(labels)])

    def _labels(self, chosen: IndexArray) -> IntArray:
        labels = np.empty(len(self.pricing.points), dtype=np.int32)
        groups = self._pool.groups[chosen]
        held = groups >= 0
        labels[groups[held]] = np.broadcast_to(np.arange(len(chosen))[:, None], groups.shape)[held]
        return labels


def _take(shares: FloatArray, groups: IndexArray, n: int, most: int) -> list[IndexArray]:
    """Classes to take as whole: those that are, the likely ones up to a number, and at least the largest share."""
    used, taken = np.zeros(n, dtype=bool), list[AnyArray]()
    for column in np.argsort(-shares, kind="stable"):
        share = shares[column]
        if share <= 1e-6 or (share < WHOLE and (most == 0 or (share < LIKELY and taken))):
            break
        members = groups[column][groups[column] >= 0]
        if used[members].any():
            continue
        most -= share < WHOLE
        used[members] = True
        taken.append(members)
    return taken


def _within(groups: IndexArray, inside: BoolArray) -> BoolArray:
    """Which groups hold no record outside; -1 is no record."""
    return np.asarray((inside[groups] | (groups < 0)).all(axis=1))


def _members(labels: Iterable[int]) -> list[IndexArray]:
    """Sorted members of every class."""
    groups = Groups.from_labels(np.asarray(labels))
    return [np.sort(members).astype(np.int64) for members in np.split(groups.order, groups.starts[1:])]
