"""Resampling (Heer): every rank publishes the mean of that rank over bootstrap samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.numeric import NumericPerturbation
from fedanon.anonymizers.perturbative.ranks import replace_by_rank
from fedanon.anonymizers.perturbative.selection import Selection
from fedanon.data.hierarchy import FloatArray
from fedanon.parameters import parameter


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
