"""Regions: a tree of tests on bins. A row goes left if its bin lies in the test's range, right if not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import IntArray
from fedanon.errors import UpdateRejectedError

MAX_REGIONS = 1_000_000
LEAF = -1


class Router(Protocol):
    """Says in which region a row lies."""

    def __len__(self) -> int: ...

    @property
    def leaves(self) -> NDArray[np.int64]:
        """The regions that rows lie in."""

    def route(self, bins: IntArray) -> NDArray[np.int64]:
        """The region every row lies in."""

    def to_array(self) -> IntArray:
        """For the wire."""


class Regions(Protocol):
    """Regions and what they would publish."""

    def __len__(self) -> int: ...

    @property
    def router(self) -> Router:
        """Which rows lie in them."""

    def boxes(self, regions: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Lowest and highest bin of each region on each axis."""


@dataclass(frozen=True, eq=False)
class RegionTree:
    """The tests, region 0 first.

    Parameters
    ----------
    axis : which axis a region is cut along, LEAF if it is not cut.
    low, high : range of bins that goes left.
    left : number of the left part; the right part is the next one.
    """

    axis: IntArray
    low: IntArray
    high: IntArray
    left: IntArray

    def __len__(self) -> int:
        return len(self.axis)

    @property
    def leaves(self) -> NDArray[np.int64]:
        """The regions that are not cut."""
        return np.flatnonzero(self.axis == LEAF)

    def route(self, bins: IntArray) -> NDArray[np.int64]:
        """The leaf every row lies in."""
        at = np.zeros(len(bins), dtype=np.int64)
        moving = np.arange(len(bins))
        while True:
            moving = moving[self.axis[at[moving]] != LEAF]
            if not moving.size:
                return at
            here = at[moving]
            value = bins[moving, self.axis[here]]
            right = (value < self.low[here]) | (value > self.high[here])
            at[moving] = self.left[here] + right

    def sums(self, of_leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the leaves, summed over those below every region."""
        found = np.zeros(len(self), dtype=np.int64)
        found[self.leaves] = of_leaves
        for region in np.flatnonzero(self.axis != LEAF)[::-1]:  # parts come after the whole
            found[region] = found[self.left[region]] + found[self.left[region] + 1]
        return found

    def leaves_below(self, region: int) -> NDArray[np.int64]:
        """The leaves that a region was cut into, in order."""
        found, open_ = [], [region]
        while open_:
            at = open_.pop()
            if self.axis[at] == LEAF:
                found.append(at)
            else:
                open_ += [int(self.left[at]), int(self.left[at]) + 1]
        return np.sort(np.array(found, dtype=np.int64))

    def to_array(self) -> IntArray:
        """For the wire."""
        return np.stack([self.axis, self.low, self.high, self.left]).astype(np.int32)

    @classmethod
    def from_array(cls, array: NDArray[Any], n_axes: int) -> RegionTree:
        """From the wire; a tree that does not end is refused."""
        if array.dtype != np.int32 or array.ndim != 2 or len(array) != 4 or not 1 <= array.shape[1] <= MAX_REGIONS:
            raise UpdateRejectedError("its regions cannot be read")
        tree = cls(*array)
        cut = np.flatnonzero(tree.axis != LEAF)
        ahead = (tree.left[cut] > cut) & (tree.left[cut] < len(tree) - 1)
        if not (((tree.axis >= LEAF) & (tree.axis < n_axes)).all() and ahead.all()):
            raise UpdateRejectedError("its regions are no tree")
        return tree


class GrowingRegions:
    """The server's regions while they are cut: tests and boxes.

    Parameters
    ----------
    lengths : number of bins of every axis.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self._tests: list[list[int]] = [[LEAF, 0, 0, 0]]
        self.low: list[IntArray] = [np.zeros(len(lengths), dtype=np.int32)]
        self.high: list[IntArray] = [np.array(lengths, dtype=np.int32) - 1]

    def __len__(self) -> int:
        return len(self._tests)

    @property
    def router(self) -> RegionTree:
        """The tests so far."""
        return RegionTree(*np.array(self._tests, dtype=np.int32).T)

    def boxes(self, regions: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Lowest and highest bin of each region on each axis."""
        return np.array([self.low[r] for r in regions]), np.array([self.high[r] for r in regions])

    def cut(self, region: int, axis: int, low: int, high: int) -> tuple[int, int]:
        """Divide a region into the bins low..high of an axis and the rest; the numbers of the parts."""
        left = len(self._tests)
        self._tests[region] = [axis, low, high, left]
        for inside in (True, False):
            box_low, box_high = self.low[region].copy(), self.high[region].copy()
            if inside:
                box_low[axis], box_high[axis] = max(low, box_low[axis]), min(high, box_high[axis])
            else:
                # a range in the middle leaves a box with a hole, whose ends stay
                if low <= box_low[axis]:
                    box_low[axis] = high + 1
                if high >= box_high[axis]:
                    box_high[axis] = low - 1
            self._tests.append([LEAF, 0, 0, 0])
            self.low.append(box_low)
            self.high.append(box_high)
        return left, left + 1
