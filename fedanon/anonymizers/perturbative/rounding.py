"""Rounding to multiples of a base."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.numeric import NumericPerturbation
from fedanon.anonymizers.perturbative.selection import Selection
from fedanon.data.hierarchy import FloatArray
from fedanon.data.schema import Numeric
from fedanon.errors import ConfigError
from fedanon.parameters import parameter


def rounded(x: FloatArray, base: float, first: int, last: int) -> FloatArray:
    """The nearest of base * first .. base * last, halves up; the two ends attract all that lies beyond them."""
    return np.asarray(base * np.clip(np.floor(x / base + 0.5), first, last))


def rounding_points(attribute: Numeric, base: float) -> tuple[int, int]:
    """Number of the first and the last multiple of ``base`` that are rounding points of a column."""
    lowest = min(attribute.low, 0.0)
    return int(np.floor(lowest / base)) + 1, int(np.floor(attribute.high / base))


@ANONYMIZERS.register("rounding")
@dataclass(frozen=True, kw_only=True)
class Rounding(NumericPerturbation):
    r"""Rounds to multiples of a base; the smallest and the largest of them attract all that lies beyond.

    The points are :math:`p_i = b i`, i = 1 .. m, and each attracts :math:`[p_i - b/2, p_i + b/2)`. As in Morais 2022,
    section 4.2.2, the first point attracts :math:`[0, p_1 + b/2)`, so that nothing is rounded to 0 unless
    ``keep_zeros`` is set, and the last :math:`[p_m - b/2, x_{max}]`, where :math:`x_{max}` is the largest value the
    schema allows and m the number of multiples up to it. Where the declared range begins below 0, the first point is
    the first multiple above its beginning.
    """

    name = "rounding"

    base: float = parameter(5.0, help="numbers are rounded to multiples of this, in the column's unit", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base == 0:
            raise ConfigError("The 'base' parameter of Rounding must be a float > 0. Got 0 instead.")

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Every column rounded alone."""
        return np.column_stack([self._round(a, column) for a, column in zip(data.attributes, data.x.T, strict=True)])

    def _round(self, attribute: Numeric, x: FloatArray) -> FloatArray:
        first, last = rounding_points(attribute, self.base)
        if last < first:
            raise ConfigError(f"The column {attribute.name!r} has no multiple of the base {self.base:g} in its range.")
        return rounded(x, self.base, first, last)
