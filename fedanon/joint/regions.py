"""Regions: how the space of quasi-identifiers is divided, and which region a row lies in.

A *router* sends every row to its region: a :class:`RegionTree` by tests on bins, :class:`NearestBoxes` to the box that
has to grow least. Regions are a router and the box that each region would publish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.joint.axes import Axis, box_losses
from fedanon.types import IntArray

MAX_REGIONS = 1_000_000
#: in place of the axis of a test: the region is not divided
LEAF = -1
#: rows that are compared with all boxes at once
CHUNK = 4096
#: weight of the loss of a box itself, so that a row in several boxes takes the smallest
SMALLER = 1e-6


class Router(Protocol):
    """Sends every row to its region."""

    def __len__(self) -> int: ...

    @property
    def leaves(self) -> NDArray[np.int64]:
        """The regions that rows can lie in."""

    def route(self, bins: IntArray) -> NDArray[np.int64]:
        """The region every row lies in."""

    def to_array(self) -> IntArray:
        """For the wire."""


class Regions(Protocol):
    """Regions and what they would publish."""

    def __len__(self) -> int: ...

    @property
    def router(self) -> Router:
        """Which rows lie in which region."""

    def boxes(self, regions: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Lowest and highest bin of each region on each axis."""


@dataclass(frozen=True, eq=False)
class RegionTree:
    """A tree of tests, region 0 first: a row goes left if its bin lies in the range of the test, else right.

    Parameters
    ----------
    axis : the axis that a region is cut along, LEAF if it is not cut.
    low, high : the range of bins that goes left.
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

    def to_array(self) -> IntArray:
        """For the wire."""
        return np.stack([self.axis, self.low, self.high, self.left]).astype(np.int32)

    @classmethod
    def from_array(cls, array: NDArray[Any], n_axes: int) -> RegionTree:
        """From the wire, checked; a tree with a loop is rejected."""
        if array.dtype != np.int32 or array.ndim != 2 or len(array) != 4 or not 1 <= array.shape[1] <= MAX_REGIONS:
            raise UpdateRejectedError("its regions cannot be read")
        tree = cls(*array)
        cut = np.flatnonzero(tree.axis != LEAF)
        ahead = (tree.left[cut] > cut) & (tree.left[cut] < len(tree) - 1)
        if not (((tree.axis >= LEAF) & (tree.axis < n_axes)).all() and ahead.all()):
            raise UpdateRejectedError("its regions are not a tree")
        return tree


class GrowingRegions:
    """The regions of the server while it cuts them: tests and boxes.

    Parameters
    ----------
    lengths : number of bins of every axis.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self._tests: list[list[int]] = [[LEAF, 0, 0, 0]]
        self.low: list[IntArray] = [np.zeros(len(lengths), dtype=np.int32)]
        self.high: list[IntArray] = [np.array(lengths, dtype=np.int32) - 1]
        #: for every region and axis, which bins the tests let pass: a range cut out of the middle leaves a hole
        self.within: list[list[NDArray[np.bool_]]] = [[np.ones(length, dtype=bool) for length in lengths]]

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
        """Divide a region into the bins low..high of an axis and the rest; returns the numbers of both parts."""
        left = len(self._tests)
        self._tests[region] = [axis, low, high, left]
        chosen = np.zeros_like(self.within[region][axis])
        chosen[low : high + 1] = True
        for side in (chosen, ~chosen):
            within, box_low, box_high = self.within[region].copy(), self.low[region].copy(), self.high[region].copy()
            within[axis] = within[axis] & side
            inside = np.flatnonzero(within[axis][box_low[axis] : box_high[axis] + 1]) + box_low[axis]
            if inside.size:
                box_low[axis], box_high[axis] = inside[0], inside[-1]
            self._tests.append([LEAF, 0, 0, 0])
            self.within.append(within)
            self.low.append(box_low)
            self.high.append(box_high)
        return left, left + 1


# ---- nearest boxes -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NearestBoxes:
    """Boxes that may overlap and need not cover everything; a row goes to the box that loses least by holding it.

    Parameters
    ----------
    low, high : lowest and highest bin of each box on each axis.
    axes : the quasi-identifiers.
    """

    low: IntArray
    high: IntArray
    axes: Sequence[Axis]

    def __len__(self) -> int:
        return len(self.low)

    @property
    def leaves(self) -> NDArray[np.int64]:
        """All boxes."""
        return np.arange(len(self.low))

    def route(self, bins: IntArray) -> NDArray[np.int64]:
        """For every row the box whose loss grows least."""
        tables = [self._losses(a) for a in range(len(self.axes))]
        own = SMALLER * box_losses(self.axes, self.low, self.high).sum(axis=1) if len(bins) else np.zeros(0)
        at = np.zeros(len(bins), dtype=np.int64)
        for start in range(0, len(bins), CHUNK):
            some = bins[start : start + CHUNK]
            grown = np.repeat(own[None], len(some), axis=0)
            for a, table in enumerate(tables):
                grown += table[some[:, a]]
            at[start : start + CHUNK] = grown.argmin(axis=1)
        return at

    def _losses(self, a: int) -> NDArray[np.float64]:
        """By how much the loss of every box along an axis grows if it holds a bin; one line per bin."""
        axis, low, high = self.axes[a], self.low[None, :, a], self.high[None, :, a]
        bins = np.arange(axis.n_bins, dtype=np.int32)[:, None]
        grown = axis.loss(np.minimum(low, bins).ravel(), np.maximum(high, bins).ravel())
        return grown.reshape(axis.n_bins, -1) - axis.loss(low[0], high[0])

    def to_array(self) -> IntArray:
        """For the wire."""
        return np.stack([self.low, self.high]).astype(np.int32)

    @classmethod
    def from_array(cls, array: NDArray[Any], axes: Sequence[Axis]) -> NearestBoxes:
        """From the wire, checked."""
        if array.dtype != np.int32 or array.shape[::2] != (2, len(axes)) or not 1 <= array.shape[1] <= MAX_REGIONS:
            raise UpdateRejectedError("its regions cannot be read")
        low, high = array
        if not ((low >= 0).all() and (low <= high).all() and (high < np.array([a.n_bins for a in axes])).all()):
            raise UpdateRejectedError("its regions are not boxes")
        return cls(low, high, axes)


@dataclass(frozen=True, eq=False)
class BoxRegions:
    """Boxes by which rows are routed, and the boxes that are published."""

    router: NearestBoxes
    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        return len(self.low)

    def boxes(self, regions: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Lowest and highest bin of each region on each axis."""
        return self.low[regions], self.high[regions]


def read_router(array: NDArray[Any], axes: Sequence[Axis]) -> Router:
    """Regions from the wire: a tree of cuts, or boxes."""
    return NearestBoxes.from_array(array, axes) if array.ndim == 3 else RegionTree.from_array(array, len(axes))
