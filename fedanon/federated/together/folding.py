"""Folding: of regions that were counted with noise, those are merged or suppressed that are not sure to hold k people.

Which classes can come out is fixed before the noise is drawn: all rows below some cut of the tree, or one region. The
doubt is divided among these, so that the lower bounds of all hold at once, whichever the noise makes us choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import IntArray
from fedanon.errors import InfeasibleError
from fedanon.federated.together.axes import Axis, loss_of
from fedanon.federated.together.merging import Classes
from fedanon.federated.together.regions import LEAF, GrowingRegions

Counts = NDArray[np.int64]
#: the people a class holds at least, by its noisy count and the number of regions that were summed
LeastPeople = Callable[[int, int], int]


@dataclass(frozen=True)
class Part:
    """A class in the making: its regions, their summed noisy counts, the people it holds at least, its loss a row."""

    regions: tuple[int, ...]
    total: int
    least: int
    loss: float

    @property
    def cost(self) -> float:
        """Loss of its rows."""
        return max(self.total, 0) * self.loss


class Folding:
    """Classes from the bottom of the tree to its top.

    Parameters
    ----------
    regions : as they were grown.
    axes : the quasi-identifiers.
    k : number of people.
    least : see :data:`LeastPeople`.
    """

    def __init__(self, regions: GrowingRegions, axes: Sequence[Axis], k: int, least: LeastPeople) -> None:
        self._regions = regions
        self._axes = axes
        self._k = k
        self._least = least

    def run(self, totals: dict[int, int]) -> tuple[Classes, Counts]:
        """Classes that hold k people for sure, and how many; ``totals`` are the noisy counts of the leaves."""
        tree = self._regions.tree
        parts = {leaf: [self._part((leaf,), total)] for leaf, total in totals.items()}
        for region in np.flatnonzero(tree.axis != LEAF)[::-1].tolist():  # parts have larger numbers than the whole
            left = int(tree.left[region])
            parts[region] = self._joined(parts.pop(left) + parts.pop(left + 1))
        kept = [part for part in parts[0] if part.least >= self._k]
        if not kept:
            most = max(max(part.least for part in parts[0]), 0)
            raise InfeasibleError(
                f"All clients together are sure to have only {most} people, fewer than k={self._k}: "
                "nothing can be released."
            )
        return self._classes(kept), np.array([part.least for part in kept], dtype=np.int64)

    def _joined(self, parts: list[Part]) -> list[Part]:
        """Both sides of a cut: as they are if all hold; else folded into one, or without those that are too small."""
        good = [part for part in parts if part.least >= self._k]
        short = [part for part in parts if part.least < self._k]
        if not short:
            return parts
        everything = self._part(sum((part.regions for part in parts), ()), sum(part.total for part in parts))
        suppressing = sum(max(part.total, 0) for part in short) + sum(part.cost for part in good)
        return good if good and suppressing < everything.cost else [everything]

    def _part(self, regions: tuple[int, ...], total: int) -> Part:
        low, high = self._box(regions)
        loss = float(loss_of(self._axes, low[None], high[None]).mean())
        return Part(regions, total, self._least(total, len(regions)), loss)

    def _box(self, regions: Sequence[int]) -> tuple[IntArray, IntArray]:
        low, high = self._regions.boxes(regions)
        return low.min(axis=0), high.max(axis=0)

    def _classes(self, kept: list[Part]) -> Classes:
        boxes = [self._box(part.regions) for part in kept]
        low, high = np.array([low for low, _ in boxes]), np.array([high for _, high in boxes])
        of_region = np.full(len(self._regions), -1, dtype=np.int32)
        for number, part in enumerate(kept):
            of_region[list(part.regions)] = number
        for leaf in self._regions.tree.leaves:
            if of_region[leaf] < 0:
                of_region[leaf] = suppressed(self._nearest(int(leaf), low, high))
        totals, members = [part.total for part in kept], [len(part.regions) for part in kept]
        return Classes(of_region, low, high, np.array(totals, dtype=np.int64), np.array(members, dtype=np.int64))

    def _nearest(self, leaf: int, low: IntArray, high: IntArray) -> int:
        """The class that has to grow least to hold a region: where new rows are looked up."""
        own_low, own_high = self._box([leaf])
        grown = loss_of(self._axes, np.minimum(low, own_low), np.maximum(high, own_high))
        return int(np.argmin((grown - loss_of(self._axes, low, high)).sum(axis=1)))


def suppressed(nearest: int) -> int:
    """The mark of a region whose rows are suppressed, with the class that new rows take."""
    return -2 - nearest
