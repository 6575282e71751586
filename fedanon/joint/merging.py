"""Merging: regions that are not sure to hold k people join the class that loses least by it, until all classes do.

With noise there is more freedom: regions may be suppressed, two short neighbors may prove k between them, and regions
that no class needs are moved about by annealing until little more can be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedanon.errors import InfeasibleError
from fedanon.joint.axes import Axis, box_losses
from fedanon.joint.regions import Regions
from fedanon.types import BoolArray, CountArray, FloatArray, IndexArray, IntArray

#: the people that a class is sure to hold, by its summed counts and the number of regions summed
LowerBound = Callable[[int, int], int]
#: two regions per line
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)
NONE = -1
#: moves that are tried for every leaf that may move
TRIALS = 5_000
#: number of neighbors known of a region
N_NEAR = 30
#: number of matchings by which pairs are tested
N_MATCHINGS = 6


@dataclass(frozen=True, eq=False)
class MergedClasses:
    """The classes that regions were merged to.

    Parameters
    ----------
    of_region : class of every region; see :class:`~fedanon.joint.plan.Plan`.
    low, high : the box that every class publishes.
    least : people that every class is sure to hold.
    """

    of_region: IntArray
    low: IntArray
    high: IntArray
    least: CountArray

    def __len__(self) -> int:
        return len(self.least)


class Merging:
    """Makes classes from regions and their counts.

    The class with the smallest bound goes first: it is merged with the class for which the loss of both grows least or,
    if ``suppress`` is set and that costs less, suppressed.

    Parameters
    ----------
    regions, axes : as they were grown.
    totals : counts of the leaves.
    least : see :data:`LowerBound`.
    additive : whether counts of two regions may be added; not if a person may have rows in both.
    suppress : whether rows may be suppressed.
    neighbors : of the leaves; if given, leaves that no class needs are moved about (:mod:`fedanon.joint._absorb`).
    confirmed : pairs of leaves that hold k people, see :func:`~fedanon.joint.bounds.confirmed_pairs`.
    """

    def __init__(
        self,
        regions: Regions,
        axes: Sequence[Axis],
        totals: CountArray,
        least: LowerBound,
        *,
        additive: bool = True,
        suppress: bool = False,
        neighbors: RegionNeighbors | None = None,
        confirmed: IndexArray = NO_PAIRS,
    ) -> None:
        self._axes = axes
        self._least = least
        self._combine = np.add if additive else np.maximum
        self._suppress = suppress
        self._n_regions, self._leaves = len(regions), regions.router.leaves
        low, high = regions.boxes(self._leaves)
        self._leaf_low, self._leaf_high, self._own = low, high, totals
        self._low, self._high = low.copy(), high.copy()
        self._totals = totals.astype(np.int64)
        self._members = np.ones(len(totals), dtype=np.int64)
        self._bounds = np.array([least(int(total), 1) for total in totals], dtype=np.int64)
        #: class of every leaf, named by one of its leaves; NONE if it is suppressed
        self._of_leaf = np.arange(len(totals))
        #: leaves that prove k people, alone or in pairs
        self._core = np.zeros(len(totals), dtype=bool)
        self._neighbors = neighbors
        self._confirmed = confirmed

    def run(self, k: int) -> MergedClasses:
        """Classes that are all sure to hold k people."""
        self._pair_up(k)
        while True:
            standing = self._standing
            if not standing.size:
                raise self._infeasible(k)
            short = int(standing[np.argmin(self._bounds[standing])])
            if self._bounds[short] >= k:
                break
            others = standing[standing != short]
            if not others.size:
                raise self._infeasible(k)
            self._merge_or_suppress(short, others)
        if self._neighbors:
            self._reassign(self._neighbors)
        return self._classes(self._standing)

    def _pair_up(self, k: int) -> None:
        """Note the leaves that prove k people, alone or in pairs; a leaf is in one pair at most."""
        self._core |= self._bounds >= k
        for one, other in self._confirmed.tolist():
            if not self._core[[one, other]].any():
                self._merge(one, other)
                self._bounds[other] = max(k, int(self._bounds[other]))
                self._core[[one, other]] = True
        self._core_bounds = self._bounds.copy()

    def _reassign(self, neighbors: RegionNeighbors) -> None:
        """Move leaves that no class needs to where the total loss is least."""
        from fedanon.joint._absorb import absorb

        # a class that is sure only as a whole keeps all its leaves
        cores = np.unique(self._of_leaf[self._core])
        free = np.flatnonzero(~self._core & (np.isin(self._of_leaf, cores) | (self._of_leaf == NONE)))
        if not (free.size and cores.size):
            return
        standing = self._standing
        class_of = np.where(self._of_leaf == NONE, NONE, np.searchsorted(standing, self._of_leaf))
        people = np.maximum(self._own, 0).astype(np.float64)
        found = absorb(
            neighbors.low,
            neighbors.high,
            people,
            class_of,
            free,
            neighbors.near,
            neighbors.losses,
            TRIALS * free.size,
            np.random.default_rng(0),
        )
        self._of_leaf = np.where(found == NONE, NONE, standing[found])
        self._bounds[cores] = self._core_bounds[cores]  # leaves that joined them may have left
        for one in standing.tolist():
            members = self._of_leaf == one
            self._low[one], self._high[one] = self._leaf_low[members].min(axis=0), self._leaf_high[members].max(axis=0)

    @property
    def _standing(self) -> IndexArray:
        found = np.unique(self._of_leaf)
        return np.asarray(found[found != NONE])

    def _infeasible(self, k: int) -> InfeasibleError:
        most = max(int(self._bounds.max(initial=0)), 0)
        return InfeasibleError(
            f"All nodes together are sure to have only {most} people, fewer than k={k}: nothing can be released."
        )

    def _merge_or_suppress(self, short: int, others: IndexArray) -> None:
        weights = np.maximum(self._totals, 0 if self._suppress else 1)
        own = self._loss(np.array([short]))[0]
        growth = (weights[others] + weights[short]) * self._loss_with(short, others)
        growth -= weights[others] * self._loss(others) + weights[short] * own
        if self._suppress and weights[short] * (len(self._axes) - own) <= growth.min():
            self._of_leaf[self._of_leaf == short] = NONE
        else:
            self._merge(short, int(others[np.argmin(growth)]))

    def _loss(self, classes: IndexArray) -> FloatArray:
        return np.asarray(box_losses(self._axes, self._low[classes], self._high[classes]).sum(axis=1))

    def _loss_with(self, one: int, others: IndexArray) -> FloatArray:
        low, high = np.minimum(self._low[others], self._low[one]), np.maximum(self._high[others], self._high[one])
        return np.asarray(box_losses(self._axes, low, high).sum(axis=1))

    def _merge(self, one: int, other: int) -> None:
        self._low[other] = np.minimum(self._low[other], self._low[one])
        self._high[other] = np.maximum(self._high[other], self._high[one])
        self._totals[other] = self._combine(self._totals[other], self._totals[one])
        self._members[other] += self._members[one]
        both = self._least(int(self._totals[other]), int(self._members[other]))
        # whoever is in a part is in the whole: joining a class never lowers its bound
        self._bounds[other] = max(both, int(self._bounds[other]), int(self._bounds[one]))
        self._of_leaf[self._of_leaf == one] = other

    def _classes(self, standing: IndexArray) -> MergedClasses:
        of_leaf = np.searchsorted(standing, self._of_leaf)
        for leaf in np.flatnonzero(self._of_leaf == NONE).tolist():
            # the class that new rows take: the one that has to grow least to hold the region
            nearest = np.argmin(self._loss_with(leaf, standing) - self._loss(standing))
            of_leaf[leaf] = mark_suppressed(int(nearest))
        of_region = np.full(self._n_regions, NONE, dtype=np.int32)
        of_region[self._leaves] = of_leaf
        return MergedClasses(of_region, self._low[standing], self._high[standing], self._bounds[standing])


def mark_suppressed(nearest: int) -> int:
    """The mark of a region whose rows are suppressed; it names the class that new rows take."""
    return -2 - nearest


# ---- neighbors -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RegionNeighbors:
    """The nearest other regions of every region.

    Parameters
    ----------
    low, high : the boxes, with small codes in place of bins, in the same order.
    losses : for every axis, by the codes of the lowest and the highest bin.
    near : the neighbors of every region, the nearest first.
    growth : by how much the loss of both grows if they become one box, with one person in each.
    """

    low: IntArray
    high: IntArray
    losses: FloatArray
    near: IndexArray
    growth: FloatArray

    @classmethod
    def from_boxes(cls, axes: Sequence[Axis], low: IntArray, high: IntArray) -> RegionNeighbors:
        """The neighbors of boxes; the time grows with the square of their number."""
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

    def matchings(self) -> list[IndexArray]:
        """Pairs of neighbors: in a matching no region is in two pairs, and no pair is in two matchings."""
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


def _matched(pairs: IndexArray, n_regions: int) -> BoolArray:
    """Which pairs are taken, greedily in order, if no region may be in two."""
    free, taken = [True] * n_regions, np.zeros(len(pairs), dtype=bool)
    for position, (one, other) in enumerate(pairs.tolist()):
        if free[one] and free[other]:
            taken[position], free[one], free[other] = True, False, False
    return taken


def _coded(axes: Sequence[Axis], low: IntArray, high: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Boxes in terms of the ends that occur, and the loss between any two ends on every axis."""
    ends = [np.unique(np.concatenate([low[:, a], high[:, a]])) for a in range(len(axes))]
    most = max(len(found) for found in ends)
    losses = np.zeros((len(axes), most, most))
    for a, (axis, found) in enumerate(zip(axes, ends, strict=True)):
        first, last = np.triu_indices(len(found))
        losses[a, first, last] = axis.loss(found[first], found[last])
    code = [(np.searchsorted(e, low[:, a]), np.searchsorted(e, high[:, a])) for a, e in enumerate(ends)]
    return np.column_stack([lo for lo, _ in code]), np.column_stack([hi for _, hi in code]), losses
