"""Growth on few noisy counts: what differential privacy leaves of the questions.

Every question costs every client some of its epsilon. The first asks for the histograms of all rows, along each axis.
By them the server draws a population, grows regions on it, asks for their rows, and weights the population until the
counts come out (:mod:`.association`); then it grows smaller regions on that. A count costs little, since a row is in
one region only, where histograms along eight axes count it eight times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedanon.joint.association import Association, drawn
from fedanon.joint.axes import MOST_BUCKETS, Axis
from fedanon.joint.cuts import Cut, Floor, Histogram, best_cut, best_trim
from fedanon.joint.method import Ask, Budget
from fedanon.joint.population import onto_total, spread
from fedanon.joint.queries import FINAL, Question, count_of_leaves, count_only
from fedanon.joint.regions import GrowingRegions
from fedanon.types import FloatArray

#: a region is cut before it is counted if it has twice this many times the rows by which the count is off
ROOM = 2.5
#: people a region should have at the end, in parts of what the final count can confirm: two short ones may be merged
SMALLEST = 0.7
#: parts of a numeric axis that the histograms tell: finer ones would drown in noise
NUMERIC_BUCKETS = 25
#: the population has so many times the rows there are, within limits
MULTIPLE, LEAST_DRAWN, MOST_DRAWN = 4, 2_000, 400_000
#: see :data:`~fedanon.joint.cuts.BALANCE`: even parts are foretold better than uneven ones
BALANCE = 0.7
#: share of all rows that a value has at least in the population: what no noisy count shows may exist
RAREST = 2e-4


@dataclass(frozen=True, eq=False)
class Foretold:
    """What is thought of a region: its rows, by those of the population that lie in it.

    Parameters
    ----------
    population : all of it.
    members : its rows in the region.
    rows : how many rows the region has.
    """

    population: Association
    members: NDArray[np.int64]
    rows: float

    @cached_property
    def weight(self) -> float:
        """Of the members."""
        return float(self.population.weights[self.members].sum())

    def along(self, number: int, axis: Axis, within: NDArray[np.bool_]) -> Histogram | None:
        """The histogram along an axis over the bins that the region's tests let through; none where it is empty."""
        if not self.weight > 0:
            return None
        bins, weights = self.population.bins[self.members, number], self.population.weights[self.members]
        counts = np.bincount(bins, weights, minlength=axis.n_bins) * (self.rows / self.weight)
        # nothing is foretold of a bin that is no hole, but it may hold a row
        counts = np.where(within, np.maximum(counts, 1e-9), 0.0).astype(np.float64)[None, :]
        return Histogram(axis, np.arange(axis.n_bins, dtype=np.int32), axis.n_bins - 1, counts, counts, exact=True)

    def part(self, axis: int, low: int, high: int, *, inside: bool) -> Foretold:
        """The rows in the bins low..high of an axis, or the others."""
        bins = self.population.bins[self.members, axis]
        part = replace(self, members=self.members[((bins >= low) & (bins <= high)) == inside])
        return replace(part, rows=self.rows * part.weight / self.weight if self.weight > 0 else 0.0)


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
        self._smallest = max(int(SMALLEST * need), 1)
        self._budget = budget
        self._draws = draws

    def run(self, ask: Ask) -> GrowingRegions:
        """Grow until regions are about as small as the final count can confirm."""
        population = self._population(ask)
        for step in sorted(set(self._budget.shares) - {1, FINAL}):
            deviation = self._deviation(step)
            regions = self._grown(population, max(ROOM * deviation, self._smallest))
            counted = self._counted(ask, regions), deviation
            lying_in = np.searchsorted(regions.router.leaves, regions.router.route(population.bins))
            population.see(lying_in, *counted)
        population.hold(lying_in, *counted)
        return self._grown(population, self._smallest)

    def _deviation(self, step: int, n_counted: int = 1) -> float:
        return float(np.sqrt(2 * self._draws) * self._budget.scale(step, n_counted))

    # ---- questions ------------------------------------------------------------------------------

    def _population(self, ask: Ask) -> Association:
        """Rows by the histograms of those without missing numbers, and by the number of others."""
        regions, known, missing = self._known_and_missing()
        asked = np.array([known, *missing], dtype=np.int32)
        grain = count_only(len(asked), len(self.axes))
        grain[0] = [NUMERIC_BUCKETS if axis.tree is None else MOST_BUCKETS for axis in self.axes]
        question = Question(regions.router, asked, *regions.boxes(asked), grain)
        layout, (rows, _) = question.layout(self.axes), ask(question)
        counts = [layout.part(rows, 0, a).sum(axis=0) for a in range(len(self.axes))]
        # one of few buckets has less noise in its sum
        found = np.average([counted.sum() for counted in counts], weights=[1 / len(counted) for counted in counts])
        n_known = max(float(found), 1.0)
        margins = [self._margin(a, layout.starts(0, a), counted, n_known) for a, counted in enumerate(counts)]
        n_missing = [max(float(layout.part(rows, i + 1, 0).sum()), 0.0) for i in range(len(missing))]
        return self._drawn(margins, n_known, dict(zip(missing.values(), n_missing, strict=True)))

    def _margin(self, a: int, starts: NDArray[np.int32], counted: NDArray[np.int64], total: float) -> FloatArray:
        axis = self.axes[a]
        n_bins = axis.missing if axis.tree is None and axis.missing > 0 else axis.n_bins
        return np.maximum(spread(onto_total(counted.astype(np.float64), total), starts, n_bins), RAREST * total)

    def _drawn(self, margins: Sequence[FloatArray], n_known: float, missing: dict[int, float]) -> Association:
        rng = np.random.default_rng(0)  # any rows will do
        n_rows = n_known + sum(missing.values())
        count = int(np.clip(MULTIPLE * n_rows, LEAST_DRAWN, MOST_DRAWN))
        parts = [drawn(margins, max(int(count * n_known / n_rows), 1), rng)]
        for axis, rows in missing.items():
            part = drawn(margins, int(count * rows / n_rows), rng)
            part[:, axis] = self.axes[axis].missing
            parts.append(part)
        return Association(np.concatenate(parts), n_rows, self._deviation(1, len(self.axes)))

    def _counted(self, ask: Ask, regions: GrowingRegions) -> NDArray[np.int64]:
        """Rows of all leaves."""
        rows, _ = ask(count_of_leaves(regions, len(self.axes)))
        return np.asarray(rows.sum(axis=0))

    # ---- cuts without questions -----------------------------------------------------------------

    def _known_and_missing(self) -> tuple[GrowingRegions, int, dict[int, int]]:
        """Regions of their own for missing numbers, with their axes: who shares one with them publishes everything."""
        regions, known, missing = GrowingRegions([axis.n_bins for axis in self.axes]), 0, {}
        for a, axis in enumerate(self.axes):
            if axis.tree is None and axis.missing > 0:
                known, apart = regions.cut(known, a, 0, axis.missing - 1)
                missing[apart] = a
        return regions, known, missing

    def _grown(self, population: Association, size: float) -> GrowingRegions:
        """Cut all regions of twice this size."""
        regions, known, missing = self._known_and_missing()
        lying_in = regions.router.route(population.bins)
        waiting = []
        for region in (known, *missing):
            whole = Foretold(population, np.flatnonzero(lying_in == region), 0.0)
            waiting.append((region, replace(whole, rows=whole.weight)))
        floor, hidden = Floor(int(size), 1), self._deviation(1, len(self.axes)) / population.n_rows
        while waiting:
            region, whole = waiting.pop()
            histograms = [whole.along(a, axis, regions.within[region][a]) for a, axis in enumerate(self.axes)]
            trim = best_trim(histograms, hidden * whole.rows, self._smallest)
            cut = trim or (best_cut(histograms, floor, BALANCE) if whole.rows >= 2 * size else None)
            if cut:
                parts = regions.cut(region, cut.axis, cut.low, cut.high)
                waiting += self._parts(whole, parts, cut)
        return regions

    def _parts(self, whole: Foretold, parts: tuple[int, int], cut: Cut) -> list[tuple[int, Foretold]]:
        return [
            (part, whole.part(cut.axis, cut.low, cut.high, inside=inside))
            for part, inside in zip(parts, (True, False), strict=True)
        ]
