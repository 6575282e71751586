"""Boxes as regions: where regions are no tree of cuts, a row lies in the box that has to grow least to hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import IntArray
from fedanon.errors import UpdateRejectedError
from fedanon.federated.together.axes import Axis, loss_of
from fedanon.federated.together.regions import MAX_REGIONS, RegionTree, Router

#: rows that are compared with all boxes at once
CHUNK = 4096
#: weight of a box's own loss: of boxes that hold a row the smallest is taken
SMALLER = 1e-6


@dataclass(frozen=True, eq=False)
class NearestBoxes:
    """Boxes that may overlap and need not cover everything.

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
        """All."""
        return np.arange(len(self.low))

    def route(self, bins: IntArray) -> NDArray[np.int64]:
        """The box with the least added loss for every row."""
        tables = [self._losses(a) for a in range(len(self.axes))]
        own = SMALLER * loss_of(self.axes, self.low, self.high).sum(axis=1) if len(bins) else np.zeros(0)
        at = np.zeros(len(bins), dtype=np.int64)
        for start in range(0, len(bins), CHUNK):
            some = bins[start : start + CHUNK]
            grown = np.repeat(own[None], len(some), axis=0)
            for a, table in enumerate(tables):
                grown += table[some[:, a]]
            at[start : start + CHUNK] = grown.argmin(axis=1)
        return at

    def _losses(self, a: int) -> NDArray[np.float64]:
        """What every box loses more along an axis if it holds a bin: bins first."""
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
            raise UpdateRejectedError("its regions are no boxes")
        return cls(low, high, axes)


@dataclass(frozen=True, eq=False)
class BoxRegions:
    """Boxes by which rows are dealt to regions, and those that are published."""

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
