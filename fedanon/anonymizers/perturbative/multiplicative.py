"""Multiplicative noise: large values move more than small ones, and zeros do not move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.numeric import NumericPerturbation
from fedanon.anonymizers.perturbative.selection import Selection
from fedanon.data.hierarchy import FloatArray
from fedanon.errors import InfeasibleError
from fedanon.parameters import parameter


def multiplied(x: FloatArray, sd: float, rng: Rng) -> FloatArray:
    """Every value times a normal factor with mean 1."""
    return np.asarray(x * (1 + sd * rng.standard_normal(x.shape)))


def log_multiplied(x: FloatArray, sd: float, rng: Rng) -> FloatArray:
    r""":math:`\exp(\ln x + e) = x e^{e}`; written so, a zero stays zero."""
    return np.asarray(x * np.exp(sd * rng.standard_normal(x.shape)))


@ANONYMIZERS.register("multiplicative_noise")
@dataclass(frozen=True, kw_only=True)
class MultiplicativeNoise(NumericPerturbation):
    r"""Every value is multiplied by a normal factor of its own with mean 1; zeros stay zero.

    :math:`Y = X \bullet Z`, E Z = 1 (Kim & Winkler 2003). Means are kept in expectation, zeros exactly; the variance
    becomes :math:`\sigma^2 + sd^2 E X^2`. A factor may be negative where ``sd`` is large: see ``non_negative``.
    """

    name = "multiplicative_noise"

    sd: float = parameter(0.1, help="standard deviation of the factor", at_least=0)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """The products."""
        return multiplied(data.x, self.sd, rng)


@ANONYMIZERS.register("log_multiplicative_noise")
@dataclass(frozen=True, kw_only=True)
class LogMultiplicativeNoise(NumericPerturbation):
    r"""Normal noise is added to the logarithms of positive values; they stay positive.

    :math:`Y = \exp(\ln X + e)`, :math:`e \sim N(0, sd^2)`. Positive stays positive, medians are kept in expectation,
    means grow by :math:`e^{sd^2/2}`. (Morais 2022, eq. 4.11, names exponential noise, which would only ever enlarge.)
    Zeros need ``keep_zeros``; negative values are refused.
    """

    name = "log_multiplicative_noise"

    sd: float = parameter(0.1, help="standard deviation of the noise on the logarithms; 0.1 is about 10 %", at_least=0)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """The products."""
        self._refuse_no_logarithm(data)
        with np.errstate(over="ignore"):  # what overflows is refused by name afterwards
            return log_multiplied(data.x, self.sd, rng)

    def _refuse_no_logarithm(self, data: Selection) -> None:
        for name, column in zip(data.names, data.x.T, strict=True):
            negative, zero = int((column < 0).sum()), int((column == 0).sum())
            if negative or (zero and not self.keep_zeros):
                hint = "" if negative else " keep_zeros leaves zeros as they are."
                raise InfeasibleError(
                    f"The method {self.name!r} takes logarithms. The column {name!r} has {negative} negative values "
                    f"and {zero} zeros.{hint}"
                )
