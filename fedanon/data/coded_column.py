"""CodedColumn: a quasi-identifier as codes whose order carries its geometry; see :mod:`fedanon.data.columns`.

It needs no pandas, which a gateway of readings would carry in its memory for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.attributes import Categorical, Numeric
from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.hierarchy import Hierarchy
from fedanon.types import FloatArray


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """One quasi-identifier as codes.

    Parameters
    ----------
    attribute : its declaration.
    values : numeric only, the value of every code (NaN for the missing code).
    ends : where a code stands for a band of numbers, its upper end; ``values`` are then the lower ones.
    has_missing : whether the last code means missing.
    """

    attribute: Numeric | Categorical
    values: FloatArray | None
    has_missing: bool = False
    ends: FloatArray | None = None

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.attribute.name

    @property
    def hierarchy(self) -> Hierarchy:
        """The taxonomy of a categorical column."""
        assert isinstance(self.attribute, Categorical)
        return self.attribute.hierarchy

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.values) if self.values is not None else self.hierarchy.n_leaves

    @property
    def upper(self) -> FloatArray:
        """Numeric only, the upper end of every code: its value, unless it stands for a band."""
        assert self.values is not None
        return self.values if self.ends is None else self.ends

    @cached_property
    def positions(self) -> FloatArray:
        """Numeric values with the missing code placed one range beyond the end, so that it is far from all."""
        assert isinstance(self.attribute, Numeric)
        assert self.values is not None
        return np.nan_to_num(self.values, nan=self.attribute.high + self.attribute.width)

    @property
    def own_cells(self) -> Cells:
        """A cell for every code that holds the code alone."""
        if self.values is not None:
            return Intervals(self.values, self.upper)
        return Nodes(np.arange(self.size, dtype=np.int32), self.hierarchy)

    def loss(self, low: NDArray[Any], high: NDArray[Any]) -> FloatArray:
        """NCP of publishing the smallest cell that covers the codes low..high (eq. 6.1, 6.2)."""
        if isinstance(self.attribute, Numeric):
            far = self.positions if self.ends is None else np.where(np.isnan(self.ends), self.positions, self.ends)
            extent = (far[high] - self.positions[low]) / self.attribute.width
            return np.asarray(np.minimum(extent, 1.0), dtype=np.float64)
        return self.hierarchy.leaf_loss[self.hierarchy.common_ancestor(low, high)]
