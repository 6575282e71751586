"""Counts of pairs of columns: what a population is drawn from that no hospital has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.hierarchy import IntArray
from fedanon.errors import UpdateRejectedError
from fedanon.federated.together.axes import MOST_BUCKETS, Axis, bucket_starts
from fedanon.federated.together.questions import MAX_COUNTS, Counts


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

    def count(self, bins: IntArray, persons: IntArray | None) -> Counts:
        """A client's exact counts; a person with several rows is counted by the first of them."""
        counts = self._count(self.buckets(bins))
        if persons is None:
            return counts
        first = Groups.equal_rows(persons[:, None]).first_rows
        return np.concatenate([counts, self._count(self.buckets(bins[first]))])

    def _count(self, buckets: IntArray) -> Counts:
        tables = []
        for a, b in self._pairs:
            shape = self._shape((a, b))
            cells = buckets[:, a].astype(np.int64) * shape[1] + buckets[:, b]
            tables.append(np.bincount(cells, minlength=math.prod(shape)))
        return np.concatenate(tables)

    def tables(self, counts: Counts) -> dict[tuple[int, int], Counts]:
        """The tables of an answer."""
        ends = np.cumsum([math.prod(self._shape(pair)) for pair in self._pairs])
        parts = np.split(counts, ends[:-1])
        return {(a, b): part.reshape(self._shape((a, b))) for (a, b), part in zip(self._pairs, parts, strict=True)}

    def consistent(self, rows: Counts) -> bool:
        """All tables count the same rows."""
        return len({int(table.sum()) for table in self.tables(rows).values()}) <= 1
