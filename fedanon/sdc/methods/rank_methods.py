"""Methods that work on ranks: rank swapping, resampling, distortion by a distribution, and reverse mapping.

Rank swapping and reverse mapping publish the original values in another order; resampling and distortion publish new
values in the original order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import parameter
from fedanon.sdc.methods.base import Columns, Perturbative
from fedanon.sdc.methods.missing import with_numbers
from fedanon.sdc.methods.numeric import (
    WHAT,
    NumericPerturbation,
    Selection,
    known_numbers,
    order_with_ties_drawn,
    original_numbers,
    reverse_map,
)
from fedanon.types import FloatArray, IndexArray, Rng

#: candidates by their names in scipy.stats; those of positive numbers begin at 0
ANYWHERE = ("norm", "uniform", "laplace", "logistic")
POSITIVE = ("lognorm", "gamma", "expon")


def rank_swapped(x: FloatArray, window: int, rng: Rng) -> FloatArray:
    """Swap the values of a column in pairs at most ``window`` ranks apart; equal values rank at random."""
    from fedanon.sdc.methods._rank_swap import swap_partners

    order = order_with_ties_drawn(x, rng)
    partner = swap_partners(len(x), window, rng.integers(2**64, size=1, dtype=np.uint64))
    y = np.empty_like(x)
    y[order] = x[order[partner]]
    return y


@ANONYMIZERS.register("rank_swapping")
@dataclass(frozen=True, kw_only=True)
class RankSwapping(NumericPerturbation):
    r"""Swaps every value of a column with a random one at most P % of N ranks away; marginals are exact.

    From the lowest rank up, each value not yet swapped takes a partner among the unswapped ones above it (Moore 1996);
    one that finds none stays. Columns are swapped one by one, so correlations shrink. The highest and the lowest values
    may be coded by their mean instead (``top``, ``bottom``); marginals are then exact between them. As in sdcMicro, P
    may follow from a correlation R0 that is to be kept, or from a share K0 of the mean by which means may change:

    .. math:: P = \frac{\sqrt{2 \sigma^2 (1 - R_0)}}{b - a}, \qquad P = \sqrt{8/3}\, \frac{K_0 |\bar x|}{b - a}

    with mean and variance of the values that are swapped, which lie between a and b.
    """

    name = "rank_swapping"
    columnwise = True

    percent: float | None = parameter(
        None, help="farthest partner, in percent of the number of rows; 10 if nothing is given", at_least=0, at_most=100
    )
    top: float = parameter(0.0, help="percent of the records coded at the top by their mean", at_least=0, at_most=100)
    bottom: float = parameter(0.0, help="percent coded at the bottom by their mean", at_least=0, at_most=100)
    r0: float | None = parameter(None, help="correlation with the original to keep, instead of percent", at_least=0)
    k0: float | None = parameter(None, help="share of a mean by which means may change, instead of percent", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(value is not None for value in (self.percent, self.r0, self.k0)) > 1:
            raise ConfigError("Rank swapping takes one of percent, r0 and k0.")
        if self.top + self.bottom >= 100:
            raise ConfigError("The shares coded at the top and at the bottom leave nothing to swap.")

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Code the ends and swap the rest, every column by itself."""
        return np.column_stack([self._swapped(column, rng) for column in data.x.T])

    def _swapped(self, x: FloatArray, rng: Rng) -> FloatArray:
        n = len(x)
        high, low = int(n * self.top / 100), int(n * self.bottom / 100)
        order = np.argsort(x, kind="stable")
        y = x.copy()
        for ends in (order[n - high :], order[:low]):
            if len(ends):
                y[ends] = x[ends].mean()
        middle = np.sort(order[low : n - high])
        y[middle] = rank_swapped(x[middle], self._window(x, order, low, high), rng)
        return y

    def _window(self, x: FloatArray, order: IndexArray, low: int, high: int) -> int:
        n, middle = len(x) - low - high, x[order[low : len(x) - high]]
        share = (10.0 if self.percent is None else self.percent) / 100
        if self.r0 is not None or self.k0 is not None:
            width = float(x[order[len(x) - max(high, 1)]] - x[order[max(low, 1) - 1]])
            wanted = np.sqrt(8 / 3) * self.k0 * abs(middle.mean()) if self.k0 is not None else 0.0
            if self.r0 is not None:
                wanted = np.sqrt(2 * middle.var() * max(1 - self.r0, 0.0))
            share = float(wanted) / width if width > 0 else 0.0
        window = min(int(n * share), n)
        if window < 1:
            raise InfeasibleError(f"{100 * share:.3g} % of {n} rows is less than one rank: nothing could be swapped.")
        return window


def replace_by_rank(x: FloatArray, values: FloatArray) -> FloatArray:
    """Put the i-th smallest of ``values`` in place of the i-th smallest of ``x``, whose ranks stay."""
    y = np.empty_like(x)
    y[np.argsort(x, kind="stable")] = np.sort(values)
    return y


def mean_of_sorted_samples(x: FloatArray, samples: int, rng: Rng) -> FloatArray:
    """Mean over bootstrap samples of ``x`` of their i-th smallest value, in ascending order."""
    ascending, n = np.sort(x), len(x)
    total = np.zeros(n)
    for _ in range(samples):
        # the number of times each value was drawn suffices to write the sample down in order
        times = np.bincount(rng.integers(n, size=n), minlength=n)
        total += np.repeat(ascending, times)
    return total / samples


@ANONYMIZERS.register("resampling")
@dataclass(frozen=True, kw_only=True)
class Resampling(NumericPerturbation):
    """Publishes for rank i of a column the mean i-th value of T sorted bootstrap samples; ranks are kept.

    Heer 1993. More samples come closer to the expected order statistics; fewer perturb more.
    """

    name = "resampling"
    columnwise = True

    samples: int = parameter(10, help="number T of bootstrap samples", at_least=1)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Resample every column by itself."""
        columns = [replace_by_rank(c, mean_of_sorted_samples(c, self.samples, rng)) for c in data.x.T]
        return np.column_stack(columns)


class Fit(NamedTuple):
    """A fitted distribution: its name, scipy's frozen form, and Kolmogorov-Smirnov's distance and p-value."""

    name: str
    distribution: Any
    distance: float
    p_value: float


def best_fit(x: FloatArray) -> Fit:
    """Return the candidate with the least Kolmogorov-Smirnov distance, fitted by maximum likelihood."""
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

    Candidates (normal, uniform, Laplace, logistic; for positive columns also log-normal, gamma, exponential) are fitted
    by maximum likelihood, and the Kolmogorov-Smirnov distance chooses among them (Liew, Choi & Liew 1985). A column
    that none of them fits at the ``significance`` is an error; 0 takes the nearest however well it fits. The test uses
    the fitted parameters, so it is lenient in small tables, and in large ones it rejects nearly every real column.
    """

    name = "distortion"
    columnwise = True

    significance: float = parameter(0.05, help="least p-value of a fit; 0 takes the nearest", at_least=0, at_most=1)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Draw every column anew, by itself."""
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


@ANONYMIZERS.register("reverse_mapping")
@dataclass(frozen=True, kw_only=True)
class ReverseMapping(Perturbative):
    """Publishes, for each current value, the original value of the same rank; marginals are exact.

    A step for the end of a pipeline (Muralidhar, Sarathy & Domingo-Ferrer 2014; Morais 2022, section 4.2.2): alone it
    changes nothing. Equal current values are ranked at random.
    """

    name = "reverse_mapping"

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Put the original values in the order of the current ones."""
        names = self.chosen(table, numeric_quasi_identifiers(table), WHAT)
        x, y = original_numbers(table, tuple(names)), known_numbers(table, current, names)
        return {name: with_numbers(current[name], reverse_map(x[:, i], y[:, i], rng)) for i, name in enumerate(names)}
