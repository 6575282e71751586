"""Queries: which counts the server may ask for, how a node counts, and how an answer is validated.

A :class:`RegionQuery` asks for histograms of some regions, a :class:`PairQuery` for tables of pairs of columns. Each
has a layout that says where its counts lie in an answer, which is one flat array of integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.errors import UpdateRejectedError
from fedanon.joint.axes import MOST_BUCKETS, Axis, bucket_starts
from fedanon.joint.regions import Regions, Router, read_router
from fedanon.types import CountArray, IntArray

#: no answer has more counts than this
MAX_COUNTS = 50_000_000
#: no node, and no federation whose counts are summed behind masks, has more people
MAX_PEOPLE = 10**8
#: the step of the final count; the queries before it are numbered from 1
FINAL = 1000
#: the largest count that travels in one byte
SMALL = np.iinfo(np.uint8).max


class AnswerLayout(Protocol):
    """The form of an answer."""

    @property
    def total(self) -> int:
        """Number of counts."""

    def count(self, bins: IntArray, persons: IntArray | None) -> CountArray:
        """The exact counts of a node: of rows and, where rows are not people, then of people."""

    def consistent(self, rows: CountArray) -> bool:
        """Whether counts that must have the same sum have it."""


class Query(Protocol):
    """A query for counts."""

    @property
    def n_counted(self) -> int:
        """How often a row is counted."""

    def to_arrays(self) -> list[NDArray[Any]]:
        """For the wire."""

    def layout(self, axes: Sequence[Axis]) -> AnswerLayout:
        """The form of its answer."""


# ---- histograms of regions -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RegionQuery:
    """Histograms of some regions.

    Parameters
    ----------
    router : the regions so far.
    asked : the regions whose counts are wanted.
    low, high : their boxes; only rows inside are counted.
    grain : for each of them and each axis the most buckets wanted; 0 for no histogram, 1 for the number of rows.
    """

    router: Router
    asked: IntArray
    low: IntArray
    high: IntArray
    grain: IntArray

    def to_arrays(self) -> list[NDArray[Any]]:
        """For the wire."""
        parts = (self.asked, self.low, self.high, self.grain)
        return [self.router.to_array(), *(part.astype(np.int32) for part in parts)]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], axes: Sequence[Axis]) -> Self:
        """From the wire, checked: a node answers nothing else."""
        if len(arrays) != 5 or any(array.dtype != np.int32 for array in arrays):
            raise UpdateRejectedError("the query cannot be read")
        router = read_router(arrays[0], axes)
        asked, low, high, grain = arrays[1:]
        shape = (asked.size, len(axes))
        if asked.ndim != 1 or any(part.shape != shape for part in (low, high, grain)):
            raise UpdateRejectedError("the query has wrong shapes")
        lengths = np.array([axis.n_bins for axis in axes])
        # a region that is named twice would be counted twice and paid for once
        leaves = np.isin(asked, router.leaves).all() and len(np.unique(asked)) == len(asked)
        if not (leaves and (low >= 0).all() and (low <= high).all() and (high < lengths).all()):
            raise UpdateRejectedError("the query asks for regions that it does not define")
        if not ((grain >= 0).all() and (grain <= MOST_BUCKETS).all()):
            raise UpdateRejectedError("the query asks for too much")
        return cls(router, asked, low, high, grain)

    @property
    def n_counted(self) -> int:
        """The most histograms wanted of any region."""
        return int((self.grain > 0).sum(axis=1).max(initial=0))

    def layout(self, axes: Sequence[Axis]) -> RegionLayout:
        """Where the counts lie in an answer."""
        return RegionLayout(self, axes)


def row_count_grain(n_regions: int, n_axes: int) -> IntArray:
    """The grain of a query for nothing but numbers of rows."""
    grain = np.zeros((n_regions, n_axes), dtype=np.int32)
    grain[:, 0] = 1
    return grain


def leaf_count_query(regions: Regions, n_axes: int) -> RegionQuery:
    """The query for the number of rows of every region that is not divided further."""
    leaves = regions.router.leaves.astype(np.int32)
    return RegionQuery(regions.router, leaves, *regions.boxes(leaves), row_count_grain(len(leaves), n_axes))


class RegionLayout:
    """Where the counts of regions and axes lie in an answer: region by region, axis by axis."""

    def __init__(self, query: RegionQuery, axes: Sequence[Axis]) -> None:
        self.query = query
        self.axes = axes
        if self.total > MAX_COUNTS:
            raise UpdateRejectedError("the query asks for too many counts")

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of buckets of every region and axis."""
        q = self.query
        lengths = (q.high - q.low + 1).astype(np.int64)
        sizes = np.where(q.grain > 0, lengths, 0)
        for r, a in zip(*np.nonzero((q.grain > 0) & (lengths > q.grain)), strict=True):
            sizes[r, a] = len(self.starts(int(r), int(a)))
        return sizes

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Position of the first bucket of every region and axis."""
        flat = self.sizes.ravel()
        return (np.cumsum(flat) - flat).reshape(self.sizes.shape)

    @cached_property
    def total(self) -> int:
        """Length of an answer."""
        return int(self.sizes.sum())

    def starts(self, region: int, axis: int) -> IntArray:
        """First bin of each bucket of the region at position ``region``."""
        q = self.query
        box = int(q.low[region, axis]), int(q.high[region, axis]), int(q.grain[region, axis])
        return bucket_starts(self.axes[axis], *box)

    def part(self, answers: CountArray, region: int, axis: int) -> CountArray:
        """The counts of a region and axis, in answers with one line per node."""
        start = self.offsets[region, axis]
        return answers[:, start : start + self.sizes[region, axis]]

    def count(self, bins: IntArray, persons: IntArray | None) -> CountArray:
        """The exact counts of a node's rows that lie in the regions and in their boxes.

        A person with several rows in a region is counted in the bucket of the first of them, so that sums over buckets
        never exceed the number of people.
        """
        query = self.query
        slot_of = np.full(len(query.router), -1, dtype=np.int64)
        slot_of[query.asked] = np.arange(len(query.asked))
        slots = slot_of[query.router.route(bins)]
        inside = ((bins >= query.low[slots]) & (bins <= query.high[slots])).all(axis=1)
        rows = np.flatnonzero((slots >= 0) & inside)
        counts = self._histograms(bins[rows], slots[rows])
        if persons is None:
            return counts
        rows = rows[Groups.equal_rows(np.column_stack([slots[rows], persons[rows]])).first_rows]
        return np.concatenate([counts, self._histograms(bins[rows], slots[rows])])

    def _histograms(self, bins: IntArray, slots: NDArray[np.int64]) -> CountArray:
        counts = np.zeros(self.total, dtype=np.int64)
        for a in range(len(self.axes)):
            here = self.query.grain[slots, a] > 0
            buckets = self._buckets(a, bins[here, a], slots[here])
            counts += np.bincount(self.offsets[slots[here], a] + buckets, minlength=self.total)
        return counts

    def _buckets(self, a: int, bins: IntArray, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bucket of every row within its region; equal boxes share one look-up table."""
        query, axis = self.query, self.axes[a]
        boxes = np.column_stack([query.low[:, a], query.high[:, a], query.grain[:, a]])
        kinds, kind_of = np.unique(boxes, axis=0, return_inverse=True)
        lookup = np.zeros((len(kinds), axis.n_bins), dtype=np.int64)
        for i, (low, high, grain) in enumerate(kinds.tolist()):
            if grain:
                lookup[i, bucket_starts(axis, low, high, grain)[1:]] = 1
        return np.cumsum(lookup, axis=1)[kind_of.ravel()[slots], bins]

    def consistent(self, rows: CountArray) -> bool:
        """Whether all histograms of a region count the same number of rows."""
        asked = self.sizes > 0
        sums = np.zeros(self.sizes.shape, dtype=np.int64)
        if asked.any():
            sums[asked] = np.add.reduceat(rows, self.offsets[asked])
        first = np.where(asked, sums, -1).max(axis=1, initial=-1)[:, None]
        return bool((~asked | (sums == first)).all())


# ---- tables of pairs of columns ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairQuery:
    """All rows, counted by the buckets of two axes at a time.

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
            raise UpdateRejectedError("the query cannot be read")
        ordered = (pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < len(axes))
        # a pair that is named twice would be counted twice and paid for once
        if not ordered.all() or len(np.unique(pairs, axis=0)) != len(pairs):
            raise UpdateRejectedError("the query asks for no pairs of columns")
        if not 2 <= grain[0] <= MOST_BUCKETS:
            raise UpdateRejectedError("the query asks for too much")
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

    def __init__(self, query: PairQuery, axes: Sequence[Axis]) -> None:
        self._pairs = query.pairs.tolist()
        self.starts = [bucket_starts(axis, 0, axis.n_bins - 1, query.grain) for axis in axes]
        if self.total > MAX_COUNTS:
            raise UpdateRejectedError("the query asks for too many counts")

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
        """The exact counts of a node; a person with several rows is counted by the first of them."""
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
        """Whether all tables count the same number of rows."""
        return len({int(table.sum()) for table in self.tables(rows).values()}) <= 1


# ---- answers on the wire -------------------------------------------------------------------------


def pack_counts(counts: CountArray) -> NDArray[Any]:
    """Counts in the smallest type of the wire that holds them."""
    low, high = int(counts.min(initial=0)), int(counts.max(initial=0))
    return counts.astype(np.uint8 if low >= 0 and high <= SMALL else np.int32)


def read_counts(arrays: Sequence[NDArray[Any]], expected: int) -> CountArray:
    """The counts of an answer, which must be as many as expected."""
    if len(arrays) != 1 or arrays[0].dtype not in (np.uint8, np.int32):
        raise UpdateRejectedError("its answer is not one array of counts")
    if arrays[0].shape != (expected,):
        raise UpdateRejectedError(f"its answer has another shape than the {expected} counts that were asked")
    return arrays[0].astype(np.int64)


def check_counts(counts: CountArray, layout: AnswerLayout, *, persons: bool, noisy: bool, exact: bool) -> None:
    """Reject what is impossible: counts of rows and, if a row is not a person, of people."""
    if np.abs(counts).max(initial=0) > MAX_PEOPLE or (not noisy and counts.min(initial=0) < 0):
        raise UpdateRejectedError("its counts are out of bounds")
    if persons and (counts[layout.total :] > counts[: layout.total]).any() and not noisy:
        raise UpdateRejectedError("it counts more people than rows")
    if exact and not layout.consistent(counts[: layout.total]):
        raise UpdateRejectedError("its histograms of a region do not count the same rows")
