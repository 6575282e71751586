r"""Cuts: where a region is divided, chosen on the counts of all nodes.

A cut of an axis sends a range of bins to one side: for numbers the bins up to a point, for categories a node of the
taxonomy. Among the cuts that leave enough people on both sides, the one with the largest

.. math:: \frac{w - p\,w_1 - (1 - p)\,w_2}{H(p)^{0.4}}

is taken, where w, w_1, w_2 are the NCP of the region and its sides along the axis, p is the share of the first side and
H the binary entropy: the loss that is saved, relative to the information that the cut uses up. Mondrian's own rule is
to cut the widest axis at its median (LeFevre, DeWitt & Ramakrishnan 2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedanon.joint.axes import Axis
from fedanon.types import FloatArray, IntArray

#: of rows or people; estimates need not be whole
Counts = NDArray[np.int64] | FloatArray
#: exponent of the entropy: 0 takes the cut that saves most, 1 the one that saves most per bit; in between regions lose
#: least in the end
BALANCE = 0.4
#: what a row loses if it is trimmed for being rare: most of what is lost by suppressing it
RARE = 0.7


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of one region along one axis, one line per node.

    Parameters
    ----------
    axis : the axis.
    starts : first bin of each bucket.
    high : last bin of the last bucket.
    rows, people : counts; the same array where a row is a person.
    exact : whether a count of 0 means that there is no row.
    """

    axis: Axis
    starts: IntArray
    high: int
    rows: Counts
    people: Counts
    exact: bool

    def extent(self) -> tuple[int, int]:
        """Lowest and highest bin that may hold a row."""
        used = self.used
        return (int(self.starts[used[0]]), int(self.ends[used[-1]])) if used.size else (int(self.starts[0]), self.high)

    @cached_property
    def ends(self) -> IntArray:
        """Last bin of each bucket."""
        return np.append(self.starts[1:] - 1, np.int32(self.high))

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """Buckets that may hold a row."""
        return np.flatnonzero(self.rows.sum(axis=0)) if self.exact else np.arange(len(self.starts))


@dataclass(frozen=True)
class Cut:
    """The bins low..high of an axis on one side, the rest on the other; ``score`` compares the cuts of a region."""

    axis: int
    low: int
    high: int
    score: float


@dataclass(frozen=True)
class Floor:
    """How many people a side must keep: ``k`` of the federation, and of every node ``k_local`` or none."""

    k: int
    k_local: int

    def allows(self, rows: Counts, people: Counts) -> NDArray[np.bool_]:
        """Which sides keep enough, by counts with one line per node."""
        local = ((rows == 0) | (people >= self.k_local)).all(axis=0)
        return np.asarray((people.sum(axis=0) >= self.k) & local)


def best_cut(histograms: Sequence[Histogram | None], floor: Floor, balance: float = BALANCE) -> Cut | None:
    """The best cut of a region by the histograms of its axes, or None; ``balance`` is the exponent of the entropy."""
    if max((h.people.sum() for h in histograms if h is not None), default=0) < 2 * floor.k:
        return None
    cuts = [_best_of_axis(i, h, floor, balance) for i, h in enumerate(histograms) if h is not None]
    return max((cut for cut in cuts if cut), key=lambda cut: cut.score, default=None)


def best_trim(histograms: Sequence[Histogram | None], unseen: float, most: float) -> Cut | None:
    """The best cut that keeps a node of a taxonomy and separates few rows from it, or None; ``score`` is what it saves.

    It is not worthwhile that all other rows publish a wider node for the sake of rare ones. These need not suffice for
    a region of their own: at worst they are suppressed.

    Parameters
    ----------
    histograms : of a region, as :func:`best_cut` takes them.
    unseen : rows that every bucket may hold beyond what its histogram says.
    most : the most rows that may be separated.
    """
    taxonomies = [(i, h) for i, h in enumerate(histograms) if h is not None and h.axis.tree is not None]
    trims = [_best_trim_of_axis(i, h, unseen, most, RARE * len(histograms)) for i, h in taxonomies]
    return max((trim for trim in trims if trim), key=lambda trim: trim.score, default=None)


def _best_trim_of_axis(number: int, histogram: Histogram, unseen: float, most: float, price: float) -> Cut | None:
    used = histogram.used
    if len(used) < 2:
        return None
    starts, ends = histogram.starts[used], histogram.ends[used]
    first, last = candidates(histogram.axis, starts, ends)
    inside, total = _inside(histogram.rows[:, used], first, last)[0], float(histogram.rows.sum())
    separated = total - inside
    whole, kept = histogram.axis.loss(starts[:1], ends[-1:]), histogram.axis.loss(starts[first], ends[last])
    saved = inside * (whole - kept) - (separated + unseen * (len(used) - (last - first + 1))) * price
    saved = np.where(separated <= most, saved, 0.0)
    best = int(np.argmax(saved))
    return Cut(number, int(starts[first[best]]), int(ends[last[best]]), float(saved[best])) if saved[best] > 0 else None


def _best_of_axis(number: int, histogram: Histogram, floor: Floor, balance: float) -> Cut | None:
    used = histogram.used
    if len(used) < 2:
        return None
    first, last = candidates(histogram.axis, histogram.starts[used], histogram.ends[used])
    rows, people = _inside(histogram.rows[:, used], first, last), _inside(histogram.people[:, used], first, last)
    all_rows, all_people = histogram.rows.sum(axis=1)[:, None], histogram.people.sum(axis=1)[:, None]
    fits = floor.allows(rows, people) & floor.allows(all_rows - rows, all_people - people)
    if not fits.any():
        return None
    first, last = first[fits], last[fits]
    share = people.sum(axis=0)[fits] / all_people.sum()
    score = saved_loss(histogram, used, first, last, share) / _entropy(share) ** balance
    best = int(np.argmax(score))
    return Cut(
        number, int(histogram.starts[used[first[best]]]), int(histogram.ends[used[last[best]]]), float(score[best])
    )


def candidates(axis: Axis, starts: IntArray, ends: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last bucket of every range that a cut may send to one side."""
    prefix = np.zeros(len(starts) - 1, dtype=np.int64), np.arange(len(starts) - 1)
    if axis.tree is None:
        return prefix
    # buckets a node covers wholly; a node that cuts through one is none of the candidates
    node_first, node_last = axis.tree.first[:-1], axis.tree.last[:-1]
    first, last = np.searchsorted(starts, node_first), np.searchsorted(ends, node_last, side="right") - 1
    whole = (first <= last) & (last - first < len(starts) - 1)
    through = (ends[np.maximum(first - 1, 0)] >= node_first) & (first > 0)
    through |= (starts[np.minimum(last + 1, len(starts) - 1)] <= node_last) & (last < len(starts) - 1)
    pairs = np.unique((first * len(starts) + last)[whole & ~through])
    return (pairs // len(starts), pairs % len(starts)) if len(pairs) else prefix


def saved_loss(
    histogram: Histogram, used: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], share: FloatArray
) -> FloatArray:
    """The NCP that each cut saves along the axis, on average per row of the region."""
    starts, ends, end = histogram.starts[used], histogram.ends[used], len(used) - 1
    rest_first = np.where(first == 0, np.minimum(last + 1, end), 0)
    rest_last = np.where(last == end, np.maximum(first - 1, 0), end)
    loss = histogram.axis.loss
    whole = loss(starts[:1], ends[-1:])
    return np.asarray(
        whole - share * loss(starts[first], ends[last]) - (1 - share) * loss(starts[rest_first], ends[rest_last])
    )


def _inside(counts: Counts, first: NDArray[np.int64], last: NDArray[np.int64]) -> Counts:
    """Counts of the buckets first..last, for every node and range."""
    sums = np.concatenate([np.zeros((len(counts), 1), dtype=counts.dtype), np.cumsum(counts, axis=1)], axis=1)
    return np.asarray(sums[:, last + 1] - sums[:, first])


def _entropy(share: FloatArray) -> FloatArray:
    return np.asarray(-(share * np.log(share) + (1 - share) * np.log1p(-share)))
