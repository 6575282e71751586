"""Merging: classes that are not sure to hold k people join the class that loses least by it, until all hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import IntArray
from fedanon.errors import InfeasibleError
from fedanon.federated.together.axes import Axis, loss_of
from fedanon.federated.together.regions import GrowingRegions

Counts = NDArray[np.int64]
#: lower bounds of classes from their summed counts and how many regions each was summed over
LowerBound = Callable[[Counts, Counts], Counts]


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of regions.

    Parameters
    ----------
    of_region : class of every region.
    low, high : box that every class publishes.
    totals : counts summed over clients and regions.
    members : number of regions.
    """

    of_region: IntArray
    low: IntArray
    high: IntArray
    totals: Counts
    members: Counts

    @classmethod
    def of_leaves(cls, regions: GrowingRegions, totals: Counts) -> Classes:
        """Every region that is not cut is a class."""
        leaves = regions.tree.leaves
        of_region = np.full(len(regions), -1, dtype=np.int32)
        of_region[leaves] = np.arange(len(leaves))
        return cls(of_region, *regions.boxes(leaves), totals, np.ones(len(leaves), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.totals)


def merge_short(
    classes: Classes, axes: Sequence[Axis], k: int, lower_bound: LowerBound, *, additive: bool
) -> tuple[Classes, Counts]:
    """Merge until every class holds k people for sure; the classes and their lower bounds.

    The class with the smallest bound is merged first, with the class for which the loss of both grows least. Counts of
    people who have several rows are not ``additive``: the same people may be in both classes.
    """
    bounds = lower_bound(classes.totals, classes.members)
    while len(classes) > 1 and bounds.min() < k:
        short = int(np.argmin(bounds))
        classes = _merged(classes, short, _nearest(classes, axes, short), np.add if additive else np.maximum)
        bounds = lower_bound(classes.totals, classes.members)
    if bounds.min() < k:
        raise InfeasibleError(
            f"All clients together are sure to have only {max(int(bounds.min()), 0)} people, fewer than k={k}: "
            "nothing can be released."
        )
    return classes, bounds


def _nearest(classes: Classes, axes: Sequence[Axis], short: int) -> int:
    weights = np.maximum(classes.totals, 1)
    alone = loss_of(axes, classes.low, classes.high).sum(axis=1)
    both = loss_of(axes, np.minimum(classes.low, classes.low[short]), np.maximum(classes.high, classes.high[short]))
    growth = (weights + weights[short]) * both.sum(axis=1) - weights * alone - weights[short] * alone[short]
    growth[short] = np.inf
    return int(np.argmin(growth))


def _merged(classes: Classes, one: int, other: int, together: np.ufunc) -> Classes:
    keep, drop = min(one, other), max(one, other)
    low, high = classes.low.copy(), classes.high.copy()
    totals, members = classes.totals.copy(), classes.members.copy()
    low[keep], high[keep] = np.minimum(low[keep], low[drop]), np.maximum(high[keep], high[drop])
    totals[keep] = together(totals[keep], totals[drop])
    members[keep] += members[drop]
    of_region = np.where(classes.of_region == drop, keep, classes.of_region)
    of_region = of_region - (of_region > drop)
    kept = np.arange(len(classes)) != drop
    return Classes(of_region.astype(np.int32), low[kept], high[kept], totals[kept], members[kept])
