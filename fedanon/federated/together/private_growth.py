"""Growth on few noisy counts: what differential privacy leaves of the questions.

Every question costs every client some of its epsilon. The first asks for the histograms of all rows, along each axis;
then regions are cut as if the axes were independent inside them: a part's histogram along another axis is that of the
whole, scaled to the part's rows. Where that goes wrong, counts tell: regions are cut to a size at which the noise of
the next, better count is small beside them, counted, and cut on. A count costs little, since a row is in one region
only, where histograms along eight axes count it eight times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray
from fedanon.federated.together.axes import MOST_BUCKETS, Axis
from fedanon.federated.together.budget import Budget
from fedanon.federated.together.cuts import Cut, Floor, Histogram, best_cut
from fedanon.federated.together.method import Ask
from fedanon.federated.together.questions import FINAL, Question, count_only
from fedanon.federated.together.regions import GrowingRegions

#: a region is cut before it is counted if it has twice this many times the rows by which the count is off
ROOM = 3
#: people a region should have at the end, in parts of what the final count can confirm: two short ones may be merged
SMALLEST = 0.75


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

    def corrected(self, counted: int, deviation: float) -> Foretold:
        """What is thought after a count: it and what was foretold weigh by their precision.

        What was foretold may be off by all of itself.
        """
        trust = self.rows**2 / (self.rows**2 + deviation**2)
        return replace(self, rows=max(self.rows + trust * (counted - self.rows), 0.5))


class PrivateGrowth:
    """Regions grown on a budget.

    Parameters
    ----------
    axes : the quasi-identifiers.
    need : number of people of a region that the final count can confirm.
    budget : of each client; step 1 is for histograms, those after it for counts.
    draws : how many noises are in a sum over all clients.
    """

    def __init__(self, axes: Sequence[Axis], need: int, *, budget: Budget, draws: float) -> None:
        self.axes = axes
        self.regions = GrowingRegions([axis.n_bins for axis in axes])
        self._smallest = max(int(SMALLEST * need), 1)
        self._budget = budget
        self._draws = draws
        self._open: dict[int, Foretold] = {}

    def run(self, ask: Ask) -> GrowingRegions:
        """Grow until regions are about as small as the final count can confirm."""
        self._open[0] = self._histograms_of_all(ask)
        self._part_missing()
        for step in sorted(set(self._budget.shares) - {1, FINAL}):
            deviation = float(np.sqrt(2 * self._draws) * self._budget.scale(step))
            self._grow(ROOM * deviation)
            self._count(ask, deviation)
        self._grow(self._smallest)
        return self.regions

    # ---- questions ------------------------------------------------------------------------------

    def _histograms_of_all(self, ask: Ask) -> Foretold:
        """What all histograms tell; they are as fine as can be: a country that most are from must stand out."""
        root = np.zeros(1, dtype=np.int32)
        grain = np.full((1, len(self.axes)), MOST_BUCKETS, dtype=np.int32)
        question = Question(self.regions.router, root, *self.regions.boxes(root), grain)
        layout, (rows, _) = question.layout(self.axes), ask(question)
        counts = [layout.part(rows, 0, a).sum(axis=0) for a in range(len(self.axes))]
        # one of few buckets has less noise in its sum
        found = np.average([counted.sum() for counted in counts], weights=[1 / len(counted) for counted in counts])
        n_rows = max(float(found), 1.0)
        weights = []
        for a, counted in enumerate(counts):
            lengths = np.diff(np.append(layout.starts(0, a), self.axes[a].n_bins))
            weights.append(np.repeat(onto_total(counted.astype(np.float64), n_rows) / lengths, lengths))
        return Foretold(n_rows, tuple(weights))

    def _count(self, ask: Ask, deviation: float) -> None:
        """Ask for the rows of the open regions, and change by them what is thought of these."""
        asked = np.array(sorted(self._open), dtype=np.int32)
        grain = count_only(len(asked), len(self.axes))
        question = Question(self.regions.router, asked, *self.regions.boxes(asked), grain)
        rows, _ = ask(question)
        for region, counted in zip(asked.tolist(), rows.sum(axis=0).tolist(), strict=True):
            self._open[region] = self._open[region].corrected(counted, deviation)

    # ---- cuts without questions -----------------------------------------------------------------

    def _part_missing(self) -> None:
        """Regions of their own for missing numbers: who shares a region with them publishes everything."""
        known = 0
        for a, axis in enumerate(self.axes):
            if axis.tree is None and axis.missing > 0 and self._open[known].weights[a].sum() > 0:
                known, _ = self._apply(known, Cut(a, 0, axis.missing - 1, 0.0))

    def _grow(self, size: float) -> None:
        """Cut all regions of twice this size; parts may be as small as regions will be at the end."""
        floor, waiting = Floor(self._smallest, 1), list(self._open)
        while waiting:
            region = waiting.pop()
            if self._open[region].rows >= 2 * size:
                cut = best_cut(self._histograms(region), floor)
                waiting += self._apply(region, cut) if cut else ()

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


def onto_total(counts: FloatArray, total: float) -> FloatArray:
    """The nearest numbers, none negative, with a given sum: all less one amount, cut off at 0 (Held et al. 1974).

    Cutting off alone would turn the noise of empty buckets into rows.
    """
    falling = np.sort(counts)[::-1]
    amounts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - amounts[np.flatnonzero(falling > amounts)[-1]], 0.0))
