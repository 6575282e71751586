r"""A population that agrees with noisy counts: rows whose columns depend on each other in pairs.

Rows are drawn by the histograms of all columns, as if these were independent, and weighted by

.. math:: w = \exp \sum_{a < b} \theta_{ab}(x_a, x_b)

with one parameter for every pair of coarse values of two columns (a log-linear model, Bishop, Fienberg & Holland 1975).
The parameters are those with which the counts of regions come out best: least squares, each count weighed by its noise
and by what such a model may miss, and parameters kept near 0 (a normal prior). Counts of disjoint regions cost a row's
privacy once, however many pairs of columns they tell of; and what one region tells holds for others, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fedanon.types import FloatArray, IntArray

#: coarse values of a column, of about equal weight
N_VALUES = 6
#: standard deviation of the parameters
STRENGTH = 0.2
#: how far a model of pairs may be off a region, in parts of it; and off one that was counted, before the count
MISSED, UNKNOWN = 0.3, 0.5
#: steps of the fit; more follow the noise
STEPS = 60


@dataclass(frozen=True, eq=False)
class Seen:
    """Counts of disjoint regions: the region of every row of the population, noisy counts, and their variances."""

    regions: NDArray[np.int64]
    counts: FloatArray
    variances: FloatArray


class Association:
    """Weights of the rows of a population.

    Parameters
    ----------
    bins : the rows, drawn by the histograms of all columns.
    n_rows : what the weights sum to.
    deviation : by which the counts of those histograms are off.
    """

    def __init__(self, bins: IntArray, n_rows: float, deviation: float) -> None:
        self.bins = bins
        self.n_rows = n_rows
        self.weights = np.full(len(bins), n_rows / len(bins))
        values = [_coarse(bins[:, a]) for a in range(bins.shape[1])]
        self._cells = [_cells(values[a], values[b]) for a, b in combinations(range(len(values)), 2)]
        self._ends = np.cumsum([0, *(cells.max() + 1 for cells in self._cells)])
        self._parameters = np.zeros(self._ends[-1])
        self._seen = [self._margin(column, deviation) for column in values]

    def see(self, regions: NDArray[np.int64], counts: NDArray[np.int64], deviation: float) -> None:
        """Learn noisy counts of disjoint regions, by the region of every row, and change the weights by them."""
        expected = np.bincount(regions, self.weights, minlength=len(counts))
        variances = np.asarray(deviation**2 + (MISSED * expected) ** 2, dtype=np.float64)
        self._seen.append(Seen(regions, counts.astype(np.float64), variances))
        self._fit()

    def hold(self, regions: NDArray[np.int64], counts: NDArray[np.int64], deviation: float) -> None:
        """Move the weights of regions towards their counts, whatever the model says."""
        expected = np.bincount(regions, self.weights, minlength=len(counts))
        trust = (UNKNOWN * expected) ** 2 / ((UNKNOWN * expected) ** 2 + deviation**2)
        found = np.maximum(expected + trust * (counts - expected), 0.5)
        self.weights = self.weights * (found / np.maximum(expected, 1e-9))[regions]

    def _margin(self, column: NDArray[np.int64], deviation: float) -> Seen:
        counts = np.bincount(column, self.weights).astype(np.float64)
        return Seen(column, counts, np.full(len(counts), deviation**2))

    def _fit(self) -> None:
        from scipy.optimize import minimize

        fitted = minimize(self._misfit, self._parameters, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
        self._parameters = fitted.x
        weights = self._weights(self._parameters)
        self.weights = weights * (self.n_rows / weights.sum())

    def _weights(self, parameters: FloatArray) -> FloatArray:
        exponents = np.zeros(len(self.bins))
        for cells, start in zip(self._cells, self._ends, strict=False):
            exponents += parameters[start + cells]
        return np.asarray(np.exp(exponents) * (self.n_rows / len(self.bins)))

    def _misfit(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Half the squared errors, and their gradient."""
        weights, pull = self._weights(parameters), np.zeros(len(self.bins))
        misfit, gradient = 0.5 * float((parameters**2).sum()) / STRENGTH**2, parameters / STRENGTH**2
        for seen in self._seen:
            error = np.bincount(seen.regions, weights, minlength=len(seen.counts)) - seen.counts
            misfit += 0.5 * float((error**2 / seen.variances).sum())
            pull += (error / seen.variances)[seen.regions]
        pull *= weights
        for cells, start, end in zip(self._cells, self._ends, self._ends[1:], strict=False):
            gradient[start:end] += np.bincount(cells, pull, minlength=end - start)
        return misfit, gradient


def _coarse(bins: IntArray) -> NDArray[np.int64]:
    """Neighbouring bins put together to a few values of about equal weight."""
    shares = np.bincount(bins) / len(bins)
    middles = np.cumsum(shares) - shares / 2
    values = np.minimum(middles * N_VALUES, N_VALUES - 1).astype(np.int64)
    return np.unique(values[bins], return_inverse=True)[1]


def _cells(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    return one * (int(other.max()) + 1) + other


def drawn(margins: Sequence[FloatArray], n_rows: int, rng: np.random.Generator) -> IntArray:
    """Rows with independent columns: each has its margin as exactly as whole rows can."""
    places = (np.arange(n_rows) + 0.5) / n_rows
    columns = [np.searchsorted(np.cumsum(m) / m.sum(), places).clip(0, len(m) - 1) for m in margins]
    return np.column_stack([rng.permutation(column) for column in columns]).astype(np.int32)
