"""Question and answer: which regions are asked for which counts, and a client's counts."""

from __future__ import annotations

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
#: the step of the final count; the questions before it are numbered from 1
FINAL = 1000


class Answered(Protocol):
    """What an answer looks like."""

    @property
    def total(self) -> int:
        """Number of counts."""

    def count(self, bins: IntArray, persons: IntArray | None) -> CountArray:
        """A client's exact counts; first of rows and, where rows are not people, then of people."""

    def consistent(self, rows: CountArray) -> bool:
        """Whether counts that must have the same sum have it."""


class Asked(Protocol):
    """A question."""

    @property
    def n_counted(self) -> int:
        """How often a row is counted."""

    def to_arrays(self) -> list[NDArray[Any]]:
        """For the wire."""

    def layout(self, axes: Sequence[Axis]) -> Answered:
        """What its answer looks like."""


@dataclass(frozen=True, eq=False)
class Question:
    """Histograms of some regions.

    Parameters
    ----------
    router : the regions so far.
    asked : regions that are asked for.
    low, high : their boxes; rows lie inside.
    grain : for each of them and each axis the most buckets wanted; 0 asks nothing, 1 the number of rows.
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
            raise UpdateRejectedError("the question cannot be read")
        router = read_router(arrays[0], axes)
        asked, low, high, grain = arrays[1:]
        shape = (asked.size, len(axes))
        if asked.ndim != 1 or any(part.shape != shape for part in (low, high, grain)):
            raise UpdateRejectedError("the question has wrong shapes")
        lengths = np.array([axis.n_bins for axis in axes])
        # a region that is asked twice would be paid once from a budget of differential privacy
        leaves = np.isin(asked, router.leaves).all() and len(np.unique(asked)) == len(asked)
        if not (leaves and (low >= 0).all() and (low <= high).all() and (high < lengths).all()):
            raise UpdateRejectedError("the question asks for no regions of its own")
        if not ((grain >= 0).all() and (grain <= MOST_BUCKETS).all()):
            raise UpdateRejectedError("the question asks for too much")
        return cls(router, asked, low, high, grain)

    @property
    def n_counted(self) -> int:
        """The most axes any region is asked for."""
        return int((self.grain > 0).sum(axis=1).max(initial=0))

    def layout(self, axes: Sequence[Axis]) -> Layout:
        """Where the counts lie in an answer."""
        return Layout(self, axes)


def count_only(n_regions: int, n_axes: int) -> IntArray:
    """The grain of a question for numbers of rows alone."""
    grain = np.zeros((n_regions, n_axes), dtype=np.int32)
    grain[:, 0] = 1
    return grain


def count_of_leaves(regions: Regions, n_axes: int) -> Question:
    """The question for the rows of all regions that are not cut."""
    leaves = regions.router.leaves.astype(np.int32)
    return Question(regions.router, leaves, *regions.boxes(leaves), count_only(len(leaves), n_axes))


class Layout:
    """Where the counts of a question's regions and axes lie in an answer: region by region, axis by axis."""

    def __init__(self, question: Question, axes: Sequence[Axis]) -> None:
        self.question = question
        self.axes = axes
        if self.total > MAX_COUNTS:
            raise UpdateRejectedError("the question asks for too many counts")

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of buckets."""
        q = self.question
        lengths = (q.high - q.low + 1).astype(np.int64)
        sizes = np.where(q.grain > 0, lengths, 0)
        for r, a in zip(*np.nonzero((q.grain > 0) & (lengths > q.grain)), strict=True):
            sizes[r, a] = len(self.starts(int(r), int(a)))
        return sizes

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Position of the first bucket."""
        flat = self.sizes.ravel()
        return (np.cumsum(flat) - flat).reshape(self.sizes.shape)

    @cached_property
    def total(self) -> int:
        """Length of an answer."""
        return int(self.sizes.sum())

    def starts(self, region: int, axis: int) -> IntArray:
        """First bin of each bucket of the region at position ``region``."""
        q = self.question
        box = int(q.low[region, axis]), int(q.high[region, axis]), int(q.grain[region, axis])
        return bucket_starts(self.axes[axis], *box)

    def part(self, answers: CountArray, region: int, axis: int) -> CountArray:
        """The counts of a region and axis in answers with clients first."""
        start = self.offsets[region, axis]
        return answers[:, start : start + self.sizes[region, axis]]

    def count(self, bins: IntArray, persons: IntArray | None) -> CountArray:
        """A client's exact counts of the rows that lie in the regions and in their boxes.

        A person with several rows in a region is counted in the bucket of the first of them, so that sums over buckets
        never exceed the number of people.
        """
        question = self.question
        slot_of = np.full(len(question.router), -1, dtype=np.int64)
        slot_of[question.asked] = np.arange(len(question.asked))
        slots = slot_of[question.router.route(bins)]
        inside = ((bins >= question.low[slots]) & (bins <= question.high[slots])).all(axis=1)
        rows = np.flatnonzero((slots >= 0) & inside)
        counts = _histograms(self, bins[rows], slots[rows])
        if persons is None:
            return counts
        rows = rows[Groups.equal_rows(np.column_stack([slots[rows], persons[rows]])).first_rows]
        return np.concatenate([counts, _histograms(self, bins[rows], slots[rows])])

    def consistent(self, rows: CountArray) -> bool:
        """All histograms of a region count the same rows."""
        asked = self.sizes > 0
        sums = np.zeros(self.sizes.shape, dtype=np.int64)
        if asked.any():
            sums[asked] = np.add.reduceat(rows, self.offsets[asked])
        first = np.where(asked, sums, -1).max(axis=1, initial=-1)[:, None]
        return bool((~asked | (sums == first)).all())


def _histograms(layout: Layout, bins: IntArray, slots: NDArray[np.int64]) -> CountArray:
    counts = np.zeros(layout.total, dtype=np.int64)
    for a, axis in enumerate(layout.axes):
        here = layout.question.grain[slots, a] > 0
        buckets = _buckets(layout, a, axis, bins[here, a], slots[here])
        counts += np.bincount(layout.offsets[slots[here], a] + buckets, minlength=layout.total)
    return counts


def _buckets(layout: Layout, a: int, axis: Axis, bins: IntArray, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of every row within its region: boxes that are alike share one look-up table."""
    question = layout.question
    boxes = np.column_stack([question.low[:, a], question.high[:, a], question.grain[:, a]])
    kinds, kind_of = np.unique(boxes, axis=0, return_inverse=True)
    lookup = np.zeros((len(kinds), axis.n_bins), dtype=np.int64)
    for i, (low, high, grain) in enumerate(kinds.tolist()):
        if grain:
            lookup[i, bucket_starts(axis, low, high, grain)[1:]] = 1
    return np.cumsum(lookup, axis=1)[kind_of.ravel()[slots], bins]


# ---- Validation of answers -----------------------------------------------------------------------

#: no hospital, and no federation whose counts are summed behind masks, has more people
MAX_PEOPLE = 10**8
SMALL = np.iinfo(np.uint8).max


def pack_counts(counts: CountArray) -> NDArray[Any]:
    """Counts in the smallest type of the wire that holds them."""
    low, high = int(counts.min(initial=0)), int(counts.max(initial=0))
    return counts.astype(np.uint8 if low >= 0 and high <= SMALL else np.int32)


def read_counts(arrays: Sequence[NDArray[Any]], expected: int) -> CountArray:
    """The numbers of an answer."""
    if len(arrays) != 1 or arrays[0].dtype not in (np.uint8, np.int32):
        raise UpdateRejectedError("its answer is not one array of counts")
    if arrays[0].shape != (expected,):
        raise UpdateRejectedError(f"its answer has another shape than the {expected} counts that were asked")
    return arrays[0].astype(np.int64)


def check_counts(counts: CountArray, layout: Answered, *, persons: bool, noisy: bool, exact: bool) -> None:
    """Refuse what cannot be: counts of rows and, if a row is not a person, of people."""
    if np.abs(counts).max(initial=0) > MAX_PEOPLE or (not noisy and counts.min(initial=0) < 0):
        raise UpdateRejectedError("its counts are out of bounds")
    if persons and (counts[layout.total :] > counts[: layout.total]).any() and not noisy:
        raise UpdateRejectedError("it counts more people than rows")
    if exact and not layout.consistent(counts[: layout.total]):
        raise UpdateRejectedError("its histograms of a region do not count the same rows")
