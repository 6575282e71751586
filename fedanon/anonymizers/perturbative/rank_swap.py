"""Rank swapping: values change places with others of nearly the same rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.numeric import NumericPerturbation
from fedanon.anonymizers.perturbative.ranks import order_with_ties_drawn
from fedanon.anonymizers.perturbative.selection import Selection
from fedanon.data.hierarchy import FloatArray
from fedanon.errors import InfeasibleError
from fedanon.parameters import parameter


def rank_swapped(x: FloatArray, window: int, rng: Rng) -> FloatArray:
    """One column with its values swapped in pairs at most ``window`` ranks apart; equal values rank at random."""
    from fedanon.kernels.rank_swap import swap_partners

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
