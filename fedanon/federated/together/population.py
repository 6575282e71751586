r"""A population drawn from counts: rows that no hospital has, with the pairs of columns of all hospitals together.

Rows are drawn along the tree of pairs with the most mutual information (Chow & Liu 1968), and then weighted until all
tables that were counted come out (iterative proportional fitting, Deming & Stephan 1940). Within a bucket of the tables
bins are drawn by the histogram of their axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray, IntArray

Pair = tuple[int, int]
Tables = Mapping[Pair, FloatArray]
#: rows drawn along the tree for each that is kept
CANDIDATES = 5
#: times every table is fitted
ROUNDS = 10


def mutual_information(table: FloatArray) -> float:
    """Of the two columns of a table of counts, in nats."""
    shares = table / max(float(table.sum()), 1e-300)
    apart = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    used = shares > 0
    return float((shares[used] * np.log(shares[used] / apart[used])).sum())


def best_tree(tables: Tables, n_axes: int) -> list[Pair]:
    """The tree over all axes whose pairs have the most mutual information: from axis 0, (known, new) in order."""
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
class Population:
    """What is known of all rows together.

    Parameters
    ----------
    weights : for every axis the weight of each bin.
    starts : for every axis the first bin of each bucket of the tables.
    tables : counts of pairs of axes, none negative; all pairs of the tree among them.
    tree : see :func:`best_tree`.
    """

    weights: Sequence[FloatArray]
    starts: Sequence[IntArray]
    tables: Tables
    tree: Sequence[Pair]

    def draw(self, n_rows: int, rng: np.random.Generator) -> IntArray:
        """Rows, as bins."""
        buckets = self._along_tree(CANDIDATES * n_rows, rng)
        weights = self._fitted(buckets)
        # evenly spaced along the weights: less random than independent draws
        places = (np.arange(n_rows) + rng.random()) / n_rows * weights.sum()
        chosen = buckets[np.minimum(np.searchsorted(np.cumsum(weights), places), len(buckets) - 1)]
        return np.column_stack([self._bins(a, chosen[:, a], rng) for a in range(len(self.weights))])

    def _along_tree(self, count: int, rng: np.random.Generator) -> IntArray:
        buckets = np.zeros((count, len(self.weights)), dtype=np.int32)
        buckets[:, 0] = _drawn(self._by_bucket(0)[None], np.zeros(count, dtype=np.int32), rng)
        for known, new in self.tree:
            table = self.tables[_ordered((known, new))]
            buckets[:, new] = _drawn(table if known < new else table.T, buckets[:, known], rng)
        return buckets

    def _by_bucket(self, axis: int) -> FloatArray:
        return np.asarray(np.add.reduceat(self.weights[axis], self.starts[axis]))

    def _fitted(self, buckets: IntArray) -> FloatArray:
        """Weights of the rows with which the tables come out, as far as these agree with each other."""
        weights = np.ones(len(buckets))
        cells = {(a, b): buckets[:, a] * np.int64(t.shape[1]) + buckets[:, b] for (a, b), t in self.tables.items()}
        for _ in range(ROUNDS):
            for pair, table in self.tables.items():
                found = np.bincount(cells[pair], weights, minlength=table.size)
                weights = weights * (table.ravel() / np.maximum(found, 1e-12))[cells[pair]]
        return weights if weights.sum() > 0 else np.ones(len(buckets))

    def _bins(self, axis: int, buckets: IntArray, rng: np.random.Generator) -> IntArray:
        """A bin of each bucket, by the weights of the bins in it."""
        starts, weights = self.starts[axis], self.weights[axis] + 1e-9
        ends = np.cumsum(weights)
        before = ends[starts] - weights[starts]
        inside = self._by_bucket(axis) + 1e-9
        places = before[buckets] + rng.random(len(buckets)) * inside[buckets] * (1 - 1e-9)
        last = np.append(starts[1:], len(weights)) - 1
        return np.clip(np.searchsorted(ends, places), starts[buckets], last[buckets]).astype(np.int32)


def _drawn(tables: FloatArray, lines: NDArray[np.int32], rng: np.random.Generator) -> IntArray:
    """A column of every row's line, by the weights of the line; any column where a line has none."""
    weights = np.where(tables.sum(axis=1, keepdims=True) > 0, tables, 1.0)
    ends = np.cumsum(weights, axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(ends))[:, None]  # all lines as one
    places = lines + rng.random(len(lines))
    found = np.searchsorted(ends.ravel(), places, side="right") - lines * np.int64(tables.shape[1])
    return np.clip(found, 0, tables.shape[1] - 1).astype(np.int32)
