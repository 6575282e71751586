"""Growth on few noisy counts: what differential privacy leaves of the questions.

Every question costs every client some of its epsilon, so two are asked before the final count: histograms along each
axis, of all rows and then of a few large regions. Between and after these answers regions are cut as if the axes were
independent inside them: a part's histogram along another axis is that of the whole, scaled to the part's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray
from fedanon.federated.together.axes import MOST_BUCKETS, Axis
from fedanon.federated.together.budget import Budget
from fedanon.federated.together.cuts import Cut, Floor, Histogram, best_cut
from fedanon.federated.together.method import Ask
from fedanon.federated.together.noise import reach
from fedanon.federated.together.questions import FINAL, Question
from fedanon.federated.together.regions import GrowingRegions

#: most buckets of a histogram: of all rows as many as there are (a country that most are from must stand out), of a
#: large region few
GRAINS = {1: MOST_BUCKETS, 2: 8}
#: a region is large if it has this many times the rows by which noise is off in a bucket
LARGE = 8
#: among so many regions the doubt is divided, while their number is not known
EXPECTED_REGIONS = 1000


@dataclass(frozen=True, eq=False)
class Foretold:
    """What is thought of a region: its rows, and for every axis their weights in all bins."""

    rows: float
    weights: tuple[FloatArray, ...]

    def histogram(self, number: int, axis: Axis, low: int, high: int) -> Histogram | None:
        """The histogram along an axis inside a box; none where it is empty."""
        inside = self.weights[number][low : high + 1]
        if inside.sum() <= 0:
            return None
        counts = (self.rows * inside / inside.sum())[None, :]
        return Histogram(axis, np.arange(low, high + 1, dtype=np.int32), high, counts, counts, exact=False)

    def part(self, axis: int, inside: NDArray[np.bool_]) -> Foretold:
        """The rows in some bins of an axis."""
        whole = self.weights[axis]
        kept = np.where(inside, whole, 0.0)
        weights = (*self.weights[:axis], kept, *self.weights[axis + 1 :])
        return Foretold(float(self.rows * kept.sum() / whole.sum()), weights)


class PrivateGrowth:
    """Regions grown on a budget.

    Parameters
    ----------
    axes : the quasi-identifiers.
    k : number of people a class must be sure to have.
    budget : of each client.
    draws : how many noises are in a sum over all clients.
    doubt : probability that some class is smaller than its lower bound says.
    """

    def __init__(self, axes: Sequence[Axis], k: int, *, budget: Budget, draws: float, doubt: float) -> None:
        self.axes = axes
        self.regions = GrowingRegions([axis.n_bins for axis in axes])
        self._k = k
        self._budget = budget
        self._draws = draws
        self._doubt = doubt
        even = tuple(np.ones(axis.n_bins) for axis in axes)
        self._open = {0: Foretold(0.0, even)}

    def run(self, ask: Ask) -> GrowingRegions:
        """Grow until regions are as small as the final count can confirm."""
        self._learn(ask, 1)
        self._grow(int(LARGE * self._deviation(2)))
        self._learn(ask, 2)
        log_doubt = float(np.log(self._doubt / EXPECTED_REGIONS))
        self._grow(self._k + reach(self._budget.scale(FINAL), self._draws, log_doubt))
        return self.regions

    def _deviation(self, step: int) -> float:
        """Standard deviation of a bucket of a step, summed over the clients."""
        return float(np.sqrt(2 * self._draws) * self._budget.scale(step, len(self.axes)))

    # ---- questions ------------------------------------------------------------------------------

    def _learn(self, ask: Ask, step: int) -> None:
        """Ask for the histograms of the open regions, and change by them what is thought of these."""
        asked = np.array(sorted(self._open), dtype=np.int32)
        grain = np.full((len(asked), len(self.axes)), GRAINS[step], dtype=np.int32)
        question = Question(self.regions.router, asked, *self.regions.boxes(asked), grain)
        layout, (rows, _) = question.layout(self.axes), ask(question)
        for position, region in enumerate(asked.tolist()):
            counts = [layout.part(rows, position, a).sum(axis=0) for a in range(len(self.axes))]
            starts = [layout.starts(position, a) for a in range(len(self.axes))]
            self._open[region] = _corrected(
                self._open[region], starts, question.high[position], counts, self._deviation(step)
            )

    # ---- cuts without questions -----------------------------------------------------------------

    def _grow(self, smallest: int) -> None:
        floor, waiting = Floor(smallest, 1), list(self._open)
        while waiting:
            region = waiting.pop()
            cut = best_cut(self._histograms(region), floor)
            if cut:
                waiting += self._apply(region, cut)

    def _histograms(self, region: int) -> list[Histogram | None]:
        low, high = self.regions.low[region].tolist(), self.regions.high[region].tolist()
        return [self._open[region].histogram(a, axis, low[a], high[a]) for a, axis in enumerate(self.axes)]

    def _apply(self, region: int, cut: Cut) -> tuple[int, int]:
        parts, whole = self.regions.cut(region, cut.axis, cut.low, cut.high), self._open.pop(region)
        bins = np.arange(self.axes[cut.axis].n_bins)
        inside = (bins >= cut.low) & (bins <= cut.high)
        for part, side in zip(parts, (inside, ~inside), strict=True):
            self._open[part] = whole.part(cut.axis, side)
        return parts


def _corrected(
    foretold: Foretold,
    starts: Sequence[NDArray[np.int32]],
    high: NDArray[np.int32],
    counts: Sequence[NDArray[np.int64]],
    deviation: float,
) -> Foretold:
    """What is thought after an answer: what was foretold of a bucket and its count weigh by their precision.

    What was foretold may be off by all of itself; before the first answer nothing is, and counts are taken as they are.
    """
    found = _n_rows(counts)
    rows = found if foretold.rows == 0 else _weighed(foretold.rows, found, deviation)
    weights = []
    for old, first, last, counted in zip(foretold.weights, starts, high.tolist(), counts, strict=True):
        bucket = np.repeat(np.arange(len(first)), np.diff(np.append(first, last + 1)))
        inside = old[int(first[0]) : last + 1]
        within = np.maximum(np.bincount(bucket, inside), 1e-9)
        expected = foretold.rows * within / within.sum()
        now = np.asarray(counted, dtype=np.float64) if foretold.rows == 0 else _weighed(expected, counted, deviation)
        new = np.zeros(len(old))
        new[int(first[0]) : last + 1] = inside * (onto_total(now, rows) / within)[bucket]
        weights.append(new)
    return Foretold(rows, tuple(weights))


def _weighed(expected: Any, counted: Any, deviation: float) -> Any:
    return expected + expected**2 / (expected**2 + deviation**2) * (counted - expected)


def _n_rows(counts: Sequence[NDArray[np.int64]]) -> float:
    """Rows of a region by all its histograms; one of few buckets has less noise in its sum."""
    weights = [1 / len(counted) for counted in counts]
    return max(float(np.average([counted.sum() for counted in counts], weights=weights)), 1.0)


def onto_total(counts: FloatArray, total: float) -> FloatArray:
    """The nearest numbers, none negative, with a given sum: all less one amount, cut off at 0 (Held et al. 1974).

    Cutting off alone would turn the noise of empty buckets into rows.
    """
    falling = np.sort(counts)[::-1]
    amounts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - amounts[np.flatnonzero(falling > amounts)[-1]], 0.0))
