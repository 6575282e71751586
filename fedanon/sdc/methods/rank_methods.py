"""Methods that work on ranks: rank swapping, resampling (Heer) and reverse mapping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Numbers
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.fields import parameter
from fedanon.sdc.methods.base import Columns, Perturbative
from fedanon.sdc.methods.numeric import WHAT, NumericPerturbation, Selection, known_numbers, original_numbers
from fedanon.sdc.methods.ranks import order_with_ties_drawn, replace_by_rank, reverse_map
from fedanon.types import FloatArray, Rng


def rank_swapped(x: FloatArray, window: int, rng: Rng) -> FloatArray:
    """One column with its values swapped in pairs at most ``window`` ranks apart; equal values rank at random."""
    from fedanon.sdc.methods._rank_swap import swap_partners

    order = order_with_ties_drawn(x, rng)
    partner = swap_partners(len(x), window, rng.integers(2**64, size=1, dtype=np.uint64))
    y = np.empty_like(x)
    y[order] = x[order[partner]]
    return y


@ANONYMIZERS.register("rank_swapping")
@dataclass(frozen=True, kw_only=True)
class RankSwapping(NumericPerturbation):
    """Every value of a column is swapped with a random one at most P % of N ranks away; marginals are exact.

    From the lowest rank up, a value that was not swapped yet takes a partner among those above it that were not either
    (Moore 1996); one that finds none stays. Columns are swapped one by one, so correlations shrink.
    """

    name = "rank_swapping"

    percent: float = parameter(10.0, help="farthest partner, in percent of the number of rows", at_least=0, at_most=100)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Every column swapped alone."""
        n = len(data.x)
        window = int(n * self.percent / 100)
        if window < 1:
            raise InfeasibleError(f"{self.percent:g} % of {n} rows is less than one rank: nothing could be swapped.")
        return np.column_stack([rank_swapped(column, window, rng) for column in data.x.T])


def mean_of_sorted_samples(x: FloatArray, samples: int, rng: Rng) -> FloatArray:
    """Mean over bootstrap samples of ``x`` of their i-th smallest value, in ascending order."""
    ascending, n = np.sort(x), len(x)
    total = np.zeros(n)
    for _ in range(samples):
        # how often each value was drawn is enough to write the sample down in order
        times = np.bincount(rng.integers(n, size=n), minlength=n)
        total += np.repeat(ascending, times)
    return total / samples


@ANONYMIZERS.register("resampling")
@dataclass(frozen=True, kw_only=True)
class Resampling(NumericPerturbation):
    """Rank i of a column publishes the mean, over T sorted bootstrap samples, of the i-th value; ranks are kept.

    Heer 1993. More samples come nearer to the expected order statistics, fewer perturb more.
    """

    name = "resampling"

    samples: int = parameter(10, help="number T of bootstrap samples", at_least=1)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Every column resampled alone."""
        columns = [replace_by_rank(c, mean_of_sorted_samples(c, self.samples, rng)) for c in data.x.T]
        return np.column_stack(columns)


@ANONYMIZERS.register("reverse_mapping")
@dataclass(frozen=True, kw_only=True)
class ReverseMapping(Perturbative):
    """Publishes, for each current value, the original value of the same rank; marginals are exact.

    A step for the end of a pipeline (Muralidhar, Sarathy & Domingo-Ferrer 2014; Morais 2022, section 4.2.2): alone it
    changes nothing. Equal current values are ranked at random.
    """

    name = "reverse_mapping"

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """The original values in the order of the current ones."""
        names = self.chosen(table, numeric_quasi_identifiers(table), WHAT)
        x, y = original_numbers(table, tuple(names)), known_numbers(table, current, names)
        return {name: Numbers(reverse_map(x[:, i], y[:, i], rng)) for i, name in enumerate(names)}
