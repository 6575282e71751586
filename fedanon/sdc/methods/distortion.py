"""Distribution distortion: a distribution is fitted to a column, and a sample of it takes the column's place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import parameter
from fedanon.sdc.methods.numeric import NumericPerturbation, Selection
from fedanon.sdc.methods.ranks import replace_by_rank
from fedanon.types import FloatArray, Rng

#: candidates by their names in scipy.stats; those of positive numbers begin at 0
ANYWHERE = ("norm", "uniform", "laplace", "logistic")
POSITIVE = ("lognorm", "gamma", "expon")


class Fit(NamedTuple):
    """A fitted distribution: its name, scipy's frozen form, and Kolmogorov-Smirnov's distance and p-value."""

    name: str
    distribution: Any
    distance: float
    p_value: float


def best_fit(x: FloatArray) -> Fit:
    """The candidate with the least Kolmogorov-Smirnov distance, fitted by maximum likelihood."""
    return min(_fits(x), key=lambda fit: fit.distance)


def _fits(x: FloatArray) -> Iterator[Fit]:
    try:
        from scipy import stats
    except ImportError:
        raise ConfigError("The method 'distortion' needs scipy: pip install 'fedanon[harness]'.") from None

    for name in (*ANYWHERE, *(POSITIVE if x.min() > 0 else ())):
        candidate = getattr(stats, name)
        arguments = candidate.fit(x, **({"floc": 0} if name in POSITIVE else {}))
        distribution = candidate(*arguments)
        distance, p_value = stats.kstest(x, distribution.cdf)
        yield Fit(name, distribution, float(distance), float(p_value))


@ANONYMIZERS.register("distortion")
@dataclass(frozen=True, kw_only=True)
class Distortion(NumericPerturbation):
    """Data distortion by probability distribution: fit, draw N values, replace rank by rank; ranks are kept.

    Candidates (normal, uniform, Laplace, logistic; of positive columns also log-normal, gamma, exponential) are fitted
    by maximum likelihood, the Kolmogorov-Smirnov distance chooses (Liew, Choi & Liew 1985). A column none of them fits
    at the ``significance`` is an error; 0 takes the nearest whatever its fit. The test is applied to the fitted
    parameters, so it is lenient in small tables, and in large ones it rejects nearly every real column.
    """

    name = "distortion"

    significance: float = parameter(0.05, help="least p-value of a fit; 0 takes the nearest", at_least=0, at_most=1)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Every column drawn anew, alone."""
        data.refuse_constant()
        return np.column_stack([self._draw(name, x, rng) for name, x in zip(data.names, data.x.T, strict=True)])

    def _draw(self, name: str, x: FloatArray, rng: Rng) -> FloatArray:
        fit = best_fit(x)
        if fit.p_value < self.significance:
            raise InfeasibleError(
                f"No distribution fits the column {name!r}: the nearest is {fit.name!r} with a p-value of "
                f"{fit.p_value:.2g}, below the significance {self.significance:g}."
            )
        return replace_by_rank(x, fit.distribution.rvs(size=len(x), random_state=rng))
