"""A population drawn from counts: rows that no hospital has, with the pairs of columns of all hospitals together.

Rows are drawn along the tree of pairs with the most mutual information (Chow & Liu 1968), and then weighted until all
tables that were counted come out (iterative proportional fitting, Deming & Stephan 1940). Within a bucket of the tables
bins are drawn by the histogram of their axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.errors import UpdateRejectedError
from fedanon.joint.axes import MOST_BUCKETS, Axis, bucket_starts
from fedanon.joint.queries import MAX_COUNTS
from fedanon.types import CountArray, FloatArray, IntArray

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


# ---- CountArray of pairs of columns --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairQuestion:
    """The rows of all, counted by the buckets of two axes at a time.

    Parameters
    ----------
    pairs : the axes of each table, the smaller first.
    grain : the most buckets of an axis.
    """

    pairs: IntArray
    grain: int

    def to_arrays(self) -> list[NDArray[Any]]:
        """For the wire."""
        return [self.pairs.astype(np.int32), np.array([self.grain], dtype=np.int32)]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], axes: Sequence[Axis]) -> Self:
        """From the wire, checked: a node answers nothing else."""
        pairs, grain = arrays
        if any(array.dtype != np.int32 for array in arrays) or pairs.shape[1:] != (2,) or grain.shape != (1,):
            raise UpdateRejectedError("the question cannot be read")
        ordered = (pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < len(axes))
        # a pair that is asked twice would be paid once from a budget of differential privacy
        if not ordered.all() or len(np.unique(pairs, axis=0)) != len(pairs):
            raise UpdateRejectedError("the question asks for no pairs of columns")
        if not 2 <= grain[0] <= MOST_BUCKETS:
            raise UpdateRejectedError("the question asks for too much")
        return cls(pairs, int(grain[0]))

    @property
    def n_counted(self) -> int:
        """A row is in every table."""
        return len(self.pairs)

    def layout(self, axes: Sequence[Axis]) -> PairLayout:
        """Where the tables lie in an answer."""
        return PairLayout(self, axes)


class PairLayout:
    """Where the tables of pairs lie in an answer: one after the other."""

    def __init__(self, question: PairQuestion, axes: Sequence[Axis]) -> None:
        self._pairs = question.pairs.tolist()
        self.starts = [bucket_starts(axis, 0, axis.n_bins - 1, question.grain) for axis in axes]
        if self.total > MAX_COUNTS:
            raise UpdateRejectedError("the question asks for too many counts")

    @cached_property
    def total(self) -> int:
        """Number of counts."""
        return sum(math.prod(self._shape(pair)) for pair in self._pairs)

    def _shape(self, pair: Sequence[int]) -> tuple[int, int]:
        return len(self.starts[pair[0]]), len(self.starts[pair[1]])

    def buckets(self, bins: IntArray) -> IntArray:
        """The bucket of every row on every axis."""
        columns = [np.searchsorted(s, bins[:, a], side="right") - 1 for a, s in enumerate(self.starts)]
        return np.column_stack(columns).astype(np.int32)

    def count(self, bins: IntArray, persons: IntArray | None) -> CountArray:
        """A client's exact counts; a person with several rows is counted by the first of them."""
        counts = self._count(self.buckets(bins))
        if persons is None:
            return counts
        first = Groups.equal_rows(persons[:, None]).first_rows
        return np.concatenate([counts, self._count(self.buckets(bins[first]))])

    def _count(self, buckets: IntArray) -> CountArray:
        tables = []
        for a, b in self._pairs:
            shape = self._shape((a, b))
            cells = buckets[:, a].astype(np.int64) * shape[1] + buckets[:, b]
            tables.append(np.bincount(cells, minlength=math.prod(shape)))
        return np.concatenate(tables)

    def tables(self, counts: CountArray) -> dict[tuple[int, int], CountArray]:
        """The tables of an answer."""
        ends = np.cumsum([math.prod(self._shape(pair)) for pair in self._pairs])
        parts = np.split(counts, ends[:-1])
        return {(a, b): part.reshape(self._shape((a, b))) for (a, b), part in zip(self._pairs, parts, strict=True)}

    def consistent(self, rows: CountArray) -> bool:
        """All tables count the same rows."""
        return len({int(table.sum()) for table in self.tables(rows).values()}) <= 1


# ---- Margins: histograms of noisy counts, as weights of bins -------------------------------------


def spread(counts: FloatArray, starts: IntArray, n_bins: int) -> FloatArray:
    """Counts of buckets, evenly over their bins."""
    lengths = np.diff(np.append(starts, n_bins))
    return np.asarray(np.repeat(counts / lengths, lengths))


def onto_total(counts: FloatArray, total: float) -> FloatArray:
    """The nearest numbers, none negative, with a given sum: all less one amount, cut off at 0 (Held et al. 1974).

    Cutting off alone would turn the noise of empty buckets into rows.
    """
    falling = np.sort(counts)[::-1]
    amounts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - amounts[np.flatnonzero(falling > amounts)[-1]], 0.0))
