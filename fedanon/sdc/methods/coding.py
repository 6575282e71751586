"""Coarser numbers: top and bottom coding of the extremes, and rounding to multiples of a base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.sdc.methods.base import Columns, Perturbative
from fedanon.sdc.methods.numeric import NumericPerturbation, Selection
from fedanon.types import FloatArray, Rng

#: share coded at the top if nothing else is requested
DEFAULT_SHARE = 0.05


@ANONYMIZERS.register("top_bottom_coding")
@dataclass(frozen=True, kw_only=True)
class TopBottomCoding(Perturbative):
    """Replaces numbers beyond a top or bottom threshold by the threshold, or by their own mean.

    A threshold is a value, or the quantile that leaves a share of the records beyond it (Morais 2022, section 4.1).
    Missing values, and intervals that an earlier step left, stay as they are.
    """

    name = "top_bottom_coding"
    row_order_matters = False

    top: float | None = parameter(None, help="numbers above this are coded")
    bottom: float | None = parameter(None, help="numbers below this are coded")
    top_share: float | None = parameter(
        None, help="share of the records coded at the top; 0.05 if nothing is given", at_least=0, at_most=1
    )
    bottom_share: float | None = parameter(None, help="share of the records coded at the bottom", at_least=0, at_most=1)
    replace: Literal["threshold", "mean"] = parameter("threshold", help="what replaces the coded numbers")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.top is not None and self.top_share is not None) or (
            self.bottom is not None and self.bottom_share is not None
        ):
            raise ConfigError("A threshold of TopBottomCoding is a value or a share, not both.")

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Code every column by itself."""
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
        """Replace the extremes of some numbers."""
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
        """Return bottom and top; quantiles are values of the data that leave at most the given share beyond them."""
        given = (self.top, self.bottom, self.top_share, self.bottom_share)
        top_share = DEFAULT_SHARE if given == (None,) * 4 else self.top_share or 0.0
        low = np.quantile(values, self.bottom_share or 0.0, method="lower") if self.bottom is None else self.bottom
        high = np.quantile(values, 1 - top_share, method="higher") if self.top is None else self.top
        return float(low), float(high)


# ---- rounding ------------------------------------------------------------------------------------


def rounded(x: FloatArray, base: float, first: int, last: int) -> FloatArray:
    """Return the nearest of base * first .. base * last, halves up; the two ends attract everything beyond them."""
    return np.asarray(base * np.clip(np.floor(x / base + 0.5), first, last))


def rounding_points(attribute: Numeric, base: float) -> tuple[int, int]:
    """Return which multiples of ``base`` are the first and the last rounding point of a column."""
    lowest = min(attribute.low, 0.0)
    return int(np.floor(lowest / base)) + 1, int(np.floor(attribute.high / base))


@ANONYMIZERS.register("rounding")
@dataclass(frozen=True, kw_only=True)
class Rounding(NumericPerturbation):
    r"""Rounds to multiples of a base; the smallest and the largest of them attract everything beyond.

    The points are :math:`p_i = b i`, i = 1 .. m, and each attracts :math:`[p_i - b/2, p_i + b/2)`. As in Morais 2022,
    section 4.2.2, the first point attracts :math:`[0, p_1 + b/2)`, so that nothing is rounded to 0 unless
    ``keep_zeros`` is set, and the last :math:`[p_m - b/2, x_{max}]`, where :math:`x_{max}` is the largest value the
    schema allows and m the number of multiples up to it. If the declared range begins below 0, the first point is
    the first multiple above its beginning.
    """

    name = "rounding"
    columnwise = True

    base: float = parameter(5.0, help="numbers are rounded to multiples of this, in the column's unit", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base == 0:
            raise ConfigError("The 'base' parameter of Rounding must be a float > 0. Got 0 instead.")

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Round every column by itself."""
        return np.column_stack([self._round(a, column) for a, column in zip(data.attributes, data.x.T, strict=True)])

    def _round(self, attribute: Numeric, x: FloatArray) -> FloatArray:
        first, last = rounding_points(attribute, self.base)
        if last < first:
            raise ConfigError(f"The column {attribute.name!r} has no multiple of the base {self.base:g} in its range.")
        return rounded(x, self.base, first, last)
