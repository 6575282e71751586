"""Top and bottom coding: the largest and smallest numbers of a column are replaced by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.base import Columns, Perturbative
from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.hierarchy import FloatArray
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.parameters import parameter

#: share coded at the top where nothing is asked for
DEFAULT_SHARE = 0.05


@ANONYMIZERS.register("top_bottom_coding")
@dataclass(frozen=True, kw_only=True)
class TopBottomCoding(Perturbative):
    """Numbers above a top or below a bottom threshold are replaced by the threshold, or by their own mean.

    A threshold is a value, or the quantile that leaves a share of the records beyond it (seed 004, section 4.1).
    Missing values and intervals that an earlier step left stay as they are.
    """

    name = "top_bottom_coding"
    row_order_matters = False

    top: float | None = parameter(None, help="numbers above this are coded")
    bottom: float | None = parameter(None, help="numbers below this are coded")
    top_share: float | None = parameter(
        None, help="share of the records coded at the top; 0.05 if nothing is given", at_least=0, at_most=1
    )
    bottom_share: float | None = parameter(None, help="share of the records coded at the bottom", at_least=0, at_most=1)
    replace: Literal["threshold", "mean"] = parameter("threshold", help="what stands for the coded numbers")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.top is not None and self.top_share is not None) or (
            self.bottom is not None and self.bottom_share is not None
        ):
            raise ConfigError("A threshold of TopBottomCoding is a value or a share, not both.")

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Every column coded alone."""
        names = self.chosen(table, numeric_quasi_identifiers(table), "numeric quasi-identifiers")
        return {name: self._coded(current[name]) for name in names}

    def _coded(self, cells: Cells) -> Intervals:
        assert not isinstance(cells, Nodes)
        low, high = (cells.low, cells.high) if isinstance(cells, Intervals) else (cells.values, cells.values)
        exact = low == high
        coded = low.copy()
        coded[exact] = self.code(low[exact])
        return Intervals(coded, np.where(exact, coded, high))

    def code(self, values: FloatArray) -> FloatArray:
        """The numbers with their ends replaced."""
        if values.size == 0:
            return values
        bottom, top = self._thresholds(values)
        if bottom > top:
            raise ConfigError("The bottom threshold lies above the top threshold.")
        coded = values.copy()
        for beyond, threshold in ((values > top, top), (values < bottom, bottom)):
            if beyond.any():
                coded[beyond] = threshold if self.replace == "threshold" else values[beyond].mean()
        return coded

    def _thresholds(self, values: FloatArray) -> tuple[float, float]:
        """Bottom and top; quantiles are rounded to values of the data that leave at most the share beyond them."""
        given = (self.top, self.bottom, self.top_share, self.bottom_share)
        top_share = DEFAULT_SHARE if given == (None,) * 4 else self.top_share or 0.0
        low = np.quantile(values, self.bottom_share or 0.0, method="lower") if self.bottom is None else self.bottom
        high = np.quantile(values, 1 - top_share, method="higher") if self.top is None else self.top
        return float(low), float(high)
