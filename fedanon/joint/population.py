r"""Populations: rows that no node has, drawn by the server so that they agree with the counts of all nodes.

:class:`TreePopulation` is made from tables of pairs of columns. Rows are drawn along the tree of pairs with the most
mutual information (Chow & Liu 1968) and then weighted until all tables come out (iterative proportional fitting, Deming
& Stephan 1940). Within a bucket of the tables, bins are drawn by the histogram of their axis.

:class:`WeightedPopulation` is made from histograms and noisy counts of regions. Rows are drawn by the histograms, as if
columns were independent, and weighted by

.. math:: w = \exp \sum_{a < b} \theta_{ab}(x_a, x_b)

with one parameter for every pair of coarse values of two columns (a log-linear model, Bishop, Fienberg & Holland 1975).
The parameters fit the counts by least squares, each count weighted by its noise and by what such a model may miss, and
are kept near 0 (a normal prior). Disjoint regions cost the privacy of a row once, however many pairs of columns their
counts inform about; and what is learned in one region holds in others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fedanon.types import FloatArray, IntArray

Pair = tuple[int, int]
Tables = Mapping[Pair, FloatArray]
#: rows drawn along the tree for each that is kept
CANDIDATES = 5
#: number of times that every table is fitted
ROUNDS = 10
#: coarse values of a column, of about equal weight
N_VALUES = 6
#: standard deviation of the prior of the parameters
STRENGTH = 0.2
#: how far a model of pairs may be off a region, relative to its rows; and off one that was counted, before the count
MISSED, UNKNOWN = 0.3, 0.5
#: steps of the fit; more of them would follow the noise
STEPS = 60
#: largest exponent of a weight; the fit may try far larger ones on its way, whose squares would be infinite
MAX_EXPONENT = 100.0


# ---- from tables of pairs ------------------------------------------------------------------------


def mutual_information(table: FloatArray) -> float:
    """Mutual information of the two columns of a table of counts, in nats."""
    shares = table / max(float(table.sum()), 1e-300)
    apart = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    used = shares > 0
    return float((shares[used] * np.log(shares[used] / apart[used])).sum())


def best_tree(tables: Tables, n_axes: int) -> list[Pair]:
    """The tree over all axes whose pairs have the most mutual information: edges (known, new) in order, from axis 0."""
    gain = {pair: mutual_information(table) for pair, table in tables.items()}
    known, edges = [0], []
    while len(known) < n_axes:
        open_ = [(a, b) for a in known for b in range(n_axes) if b not in known]
        edges.append(max(open_, key=lambda edge: gain[_ordered(edge)]))
        known.append(edges[-1][1])
    return edges


def _ordered(edge: Pair) -> Pair:
    return min(edge), max(edge)


@dataclass(frozen=True, eq=False)
class TreePopulation:
    """What is known of the rows of all nodes.

    Parameters
    ----------
    weights : for every axis the weight of each bin.
    starts : for every axis the first bin of each bucket of the tables.
    tables : counts of pairs of axes, none negative, with all pairs of the tree among them.
    tree : see :func:`best_tree`.
    """

    weights: Sequence[FloatArray]
    starts: Sequence[IntArray]
    tables: Tables
    tree: Sequence[Pair]

    def draw(self, n_rows: int, rng: np.random.Generator) -> IntArray:
        """Rows, as bins."""
        buckets = self._draw_along_tree(CANDIDATES * n_rows, rng)
        weights = self._fit_weights(buckets)
        # evenly spaced along the weights: varies less than independent draws
        places = (np.arange(n_rows) + rng.random()) / n_rows * weights.sum()
        chosen = buckets[np.minimum(np.searchsorted(np.cumsum(weights), places), len(buckets) - 1)]
        return np.column_stack([self._draw_bins(a, chosen[:, a], rng) for a in range(len(self.weights))])

    def _draw_along_tree(self, count: int, rng: np.random.Generator) -> IntArray:
        buckets = np.zeros((count, len(self.weights)), dtype=np.int32)
        buckets[:, 0] = _draw_columns(self._by_bucket(0)[None], np.zeros(count, dtype=np.int32), rng)
        for known, new in self.tree:
            table = self.tables[_ordered((known, new))]
            buckets[:, new] = _draw_columns(table if known < new else table.T, buckets[:, known], rng)
        return buckets

    def _by_bucket(self, axis: int) -> FloatArray:
        return np.asarray(np.add.reduceat(self.weights[axis], self.starts[axis]))

    def _fit_weights(self, buckets: IntArray) -> FloatArray:
        """Weights of the rows with which the tables come out, as far as the tables agree with each other."""
        weights = np.ones(len(buckets))
        cells = {(a, b): buckets[:, a] * np.int64(t.shape[1]) + buckets[:, b] for (a, b), t in self.tables.items()}
        for _ in range(ROUNDS):
            for pair, table in self.tables.items():
                found = np.bincount(cells[pair], weights, minlength=table.size)
                weights = weights * (table.ravel() / np.maximum(found, 1e-12))[cells[pair]]
        return weights if weights.sum() > 0 else np.ones(len(buckets))

    def _draw_bins(self, axis: int, buckets: IntArray, rng: np.random.Generator) -> IntArray:
        """A bin of each bucket, by the weights of the bins in it."""
        starts, weights = self.starts[axis], self.weights[axis] + 1e-9
        ends = np.cumsum(weights)
        before = ends[starts] - weights[starts]
        inside = self._by_bucket(axis) + 1e-9
        places = before[buckets] + rng.random(len(buckets)) * inside[buckets] * (1 - 1e-9)
        last = np.append(starts[1:], len(weights)) - 1
        return np.clip(np.searchsorted(ends, places), starts[buckets], last[buckets]).astype(np.int32)


def _draw_columns(tables: FloatArray, lines: NDArray[np.int32], rng: np.random.Generator) -> IntArray:
    """For every row a column of its line, by the weights of the line; any column where a line has no weight."""
    weights = np.where(tables.sum(axis=1, keepdims=True) > 0, tables, 1.0)
    ends = np.cumsum(weights, axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(ends))[:, None]  # all lines as one
    places = lines + rng.random(len(lines))
    found = np.searchsorted(ends.ravel(), places, side="right") - lines * np.int64(tables.shape[1])
    return np.clip(found, 0, tables.shape[1] - 1).astype(np.int32)


# ---- from histograms and noisy counts of regions -------------------------------------------------


def spread_over_bins(counts: FloatArray, starts: IntArray, n_bins: int) -> FloatArray:
    """Counts of buckets, spread evenly over their bins."""
    lengths = np.diff(np.append(starts, n_bins))
    return np.asarray(np.repeat(counts / lengths, lengths))


def project_onto_total(counts: FloatArray, total: float) -> FloatArray:
    """The nearest nonnegative numbers with a given sum: one amount is subtracted from all (Held et al. 1974).

    Cutting off at 0 alone would turn the noise of empty buckets into rows.
    """
    falling = np.sort(counts)[::-1]
    amounts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - amounts[np.flatnonzero(falling > amounts)[-1]], 0.0))


def draw_independent(margins: Sequence[FloatArray], n_rows: int, rng: np.random.Generator) -> IntArray:
    """Rows with independent columns, each of which follows its margin as closely as whole rows can."""
    places = (np.arange(n_rows) + 0.5) / n_rows
    columns = [np.searchsorted(np.cumsum(m) / m.sum(), places).clip(0, len(m) - 1) for m in margins]
    return np.column_stack([rng.permutation(column) for column in columns]).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Observation:
    """Counts of disjoint regions: the region of every row of the population, noisy counts, and their variances."""

    regions: NDArray[np.int64]
    counts: FloatArray
    variances: FloatArray


class WeightedPopulation:
    """Rows with weights.

    Parameters
    ----------
    bins : the rows, drawn by the histograms of all columns.
    n_rows : the sum of the weights.
    deviation : standard deviation of the counts of those histograms.
    """

    def __init__(self, bins: IntArray, n_rows: float, deviation: float) -> None:
        self.bins = bins
        self.n_rows = n_rows
        self.weights = np.full(len(bins), n_rows / len(bins))
        values = [_coarsen(bins[:, a]) for a in range(bins.shape[1])]
        self._cells = [_number_cells(values[a], values[b]) for a, b in combinations(range(len(values)), 2)]
        self._ends = np.cumsum([0, *(cells.max() + 1 for cells in self._cells)])
        self._parameters = np.zeros(self._ends[-1])
        self._observed = [self._observe_margin(column, deviation) for column in values]

    def observe(self, regions: NDArray[np.int64], counts: NDArray[np.int64], deviation: float) -> None:
        """Fit the weights to noisy counts of disjoint regions too; ``regions`` has the region of every row."""
        expected = np.bincount(regions, self.weights, minlength=len(counts))
        variances = np.asarray(deviation**2 + (MISSED * expected) ** 2, dtype=np.float64)
        self._observed.append(Observation(regions, counts.astype(np.float64), variances))
        self._fit()

    def pull_towards(self, regions: NDArray[np.int64], counts: NDArray[np.int64], deviation: float) -> None:
        """Scale the weights of regions towards their counts, whatever the model says."""
        expected = np.bincount(regions, self.weights, minlength=len(counts))
        trust = (UNKNOWN * expected) ** 2 / ((UNKNOWN * expected) ** 2 + deviation**2)
        found = np.maximum(expected + trust * (counts - expected), 0.5)
        self.weights = self.weights * (found / np.maximum(expected, 1e-9))[regions]

    def _observe_margin(self, column: NDArray[np.int64], deviation: float) -> Observation:
        counts = np.bincount(column, self.weights).astype(np.float64)
        return Observation(column, counts, np.full(len(counts), deviation**2))

    def _fit(self) -> None:
        from scipy.optimize import minimize

        fitted = minimize(self._misfit, self._parameters, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
        self._parameters = fitted.x
        weights = self._weigh(self._parameters)
        self.weights = weights * (self.n_rows / weights.sum())

    def _weigh(self, parameters: FloatArray) -> FloatArray:
        exponents = np.zeros(len(self.bins))
        for cells, start in zip(self._cells, self._ends, strict=False):
            exponents += parameters[start + cells]
        return np.asarray(np.exp(np.minimum(exponents, MAX_EXPONENT)) * (self.n_rows / len(self.bins)))

    def _misfit(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Half the squared errors, and their gradient."""
        weights, pull = self._weigh(parameters), np.zeros(len(self.bins))
        misfit, gradient = 0.5 * float((parameters**2).sum()) / STRENGTH**2, parameters / STRENGTH**2
        for observed in self._observed:
            error = np.bincount(observed.regions, weights, minlength=len(observed.counts)) - observed.counts
            misfit += 0.5 * float((error**2 / observed.variances).sum())
            pull += (error / observed.variances)[observed.regions]
        pull *= weights
        for cells, start, end in zip(self._cells, self._ends, self._ends[1:], strict=False):
            gradient[start:end] += np.bincount(cells, pull, minlength=end - start)
        return misfit, gradient


def _coarsen(bins: IntArray) -> NDArray[np.int64]:
    """Adjacent bins grouped to a few values of about equal weight."""
    shares = np.bincount(bins) / len(bins)
    middles = np.cumsum(shares) - shares / 2
    values = np.minimum(middles * N_VALUES, N_VALUES - 1).astype(np.int64)
    return np.unique(values[bins], return_inverse=True)[1]


def _number_cells(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    return one * (int(other.max()) + 1) + other
