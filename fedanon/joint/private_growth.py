"""Growth on a privacy budget: regions found by few noisy counts.

Every query costs every node some of its epsilon. The first asks for the histograms of all rows along each axis. From
them the server draws a population, grows regions on it, asks for their numbers of rows, and weights the population
until these come out (:class:`~fedanon.joint.population.WeightedPopulation`); then it grows smaller regions on that.
Numbers of rows are cheap, since a row is in one region only, whereas histograms along eight axes count it eight times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedanon.joint.axes import MOST_BUCKETS, Axis
from fedanon.joint.cuts import Cut, Floor, Histogram, best_cut, best_trim
from fedanon.joint.method import Budget, RunQuery
from fedanon.joint.population import WeightedPopulation, draw_independent, project_onto_total, spread_over_bins
from fedanon.joint.queries import FINAL, RegionQuery, leaf_count_query, row_count_grain
from fedanon.joint.regions import GrowingRegions
from fedanon.types import FloatArray

#: a region is cut before it is counted if it has twice this many times the standard deviation of its count
ROOM = 2.5
#: people that a final region should have, relative to what the final count can confirm: two short ones may be merged
SMALLEST = 0.7
#: buckets of a numeric axis in the histograms: finer ones would drown in noise
NUMERIC_BUCKETS = 25
#: size of the population, in multiples of the number of rows and within limits
MULTIPLE, LEAST_DRAWN, MOST_DRAWN = 4, 2_000, 400_000
#: see :data:`~fedanon.joint.cuts.BALANCE`: even parts are estimated better than uneven ones
BALANCE = 0.7
#: the least share of all rows that a value has in the population: it may exist though no noisy count shows it
RAREST = 2e-4


@dataclass(frozen=True, eq=False)
class RegionEstimate:
    """The estimated rows of a region: those of the population that lie in it.

    Parameters
    ----------
    population : the whole population.
    members : its rows in the region.
    rows : the estimated number of rows of the nodes.
    """

    population: WeightedPopulation
    members: NDArray[np.int64]
    rows: float

    @cached_property
    def weight(self) -> float:
        """Sum of the weights of the members."""
        return float(self.population.weights[self.members].sum())

    def along(self, number: int, axis: Axis, within: NDArray[np.bool_]) -> Histogram | None:
        """The histogram along an axis over the bins that the tests of the region let pass; None if it is empty."""
        if not self.weight > 0:
            return None
        bins, weights = self.population.bins[self.members, number], self.population.weights[self.members]
        counts = np.bincount(bins, weights, minlength=axis.n_bins) * (self.rows / self.weight)
        # a bin without members may still hold a row, unless the tests exclude it
        counts = np.where(within, np.maximum(counts, 1e-9), 0.0).astype(np.float64)[None, :]
        return Histogram(axis, np.arange(axis.n_bins, dtype=np.int32), axis.n_bins - 1, counts, counts, exact=True)

    def part(self, axis: int, low: int, high: int, *, inside: bool) -> RegionEstimate:
        """The rows in the bins low..high of an axis, or the others."""
        bins = self.population.bins[self.members, axis]
        part = replace(self, members=self.members[((bins >= low) & (bins <= high)) == inside])
        return replace(part, rows=self.rows * part.weight / self.weight if self.weight > 0 else 0.0)


class PrivateGrowth:
    """Grows regions on a budget.

    Parameters
    ----------
    axes : the quasi-identifiers.
    need : number of people in a region that the final count can confirm.
    budget : of each node; step 1 is for histograms, the following ones are for counts of regions.
    draws : number of noises in a sum over all nodes.
    """

    def __init__(self, axes: Sequence[Axis], need: int, *, budget: Budget, draws: float) -> None:
        self.axes = axes
        self._smallest = max(int(SMALLEST * need), 1)
        self._budget = budget
        self._draws = draws

    def run(self, run_query: RunQuery) -> GrowingRegions:
        """Grow until regions are about as small as the final count can confirm."""
        population = self._query_population(run_query)
        for step in sorted(set(self._budget.shares) - {1, FINAL}):
            deviation = self._deviation(step)
            regions = self._grow(population, max(ROOM * deviation, self._smallest))
            counted = self._count_leaves(run_query, regions), deviation
            leaf_of = np.searchsorted(regions.router.leaves, regions.router.route(population.bins))
            population.observe(leaf_of, *counted)
        population.pull_towards(leaf_of, *counted)
        return self._grow(population, self._smallest)

    def _deviation(self, step: int, n_counted: int = 1) -> float:
        """Standard deviation of a sum over all nodes."""
        return float(np.sqrt(2 * self._draws) * self._budget.scale(step, n_counted))

    # ---- queries --------------------------------------------------------------------------------

    def _query_population(self, run_query: RunQuery) -> WeightedPopulation:
        """A population by the histograms of rows without missing numbers, and by how many rows have some."""
        regions, known, missing = self._separate_missing()
        asked = np.array([known, *missing], dtype=np.int32)
        grain = row_count_grain(len(asked), len(self.axes))
        grain[0] = [NUMERIC_BUCKETS if axis.tree is None else MOST_BUCKETS for axis in self.axes]
        query = RegionQuery(regions.router, asked, *regions.boxes(asked), grain)
        layout, (rows, _) = query.layout(self.axes), run_query(query)
        counts = [layout.part(rows, 0, a).sum(axis=0) for a in range(len(self.axes))]
        # the fewer buckets a histogram has, the less noise is in its sum
        found = np.average([counted.sum() for counted in counts], weights=[1 / len(counted) for counted in counts])
        n_known = max(float(found), 1.0)
        margins = [self._margin(a, layout.starts(0, a), counted, n_known) for a, counted in enumerate(counts)]
        n_missing = [max(float(layout.part(rows, i + 1, 0).sum()), 0.0) for i in range(len(missing))]
        return self._draw(margins, n_known, dict(zip(missing.values(), n_missing, strict=True)))

    def _margin(self, a: int, starts: NDArray[np.int32], counted: NDArray[np.int64], total: float) -> FloatArray:
        axis = self.axes[a]
        n_bins = axis.missing if axis.tree is None and axis.missing > 0 else axis.n_bins
        counts = project_onto_total(counted.astype(np.float64), total)
        return np.maximum(spread_over_bins(counts, starts, n_bins), RAREST * total)

    def _draw(self, margins: Sequence[FloatArray], n_known: float, missing: dict[int, float]) -> WeightedPopulation:
        rng = np.random.default_rng(0)  # any rows will do
        n_rows = n_known + sum(missing.values())
        count = int(np.clip(MULTIPLE * n_rows, LEAST_DRAWN, MOST_DRAWN))
        parts = [draw_independent(margins, max(int(count * n_known / n_rows), 1), rng)]
        for axis, rows in missing.items():
            part = draw_independent(margins, int(count * rows / n_rows), rng)
            part[:, axis] = self.axes[axis].missing
            parts.append(part)
        return WeightedPopulation(np.concatenate(parts), n_rows, self._deviation(1, len(self.axes)))

    def _count_leaves(self, run_query: RunQuery, regions: GrowingRegions) -> NDArray[np.int64]:
        rows, _ = run_query(leaf_count_query(regions, len(self.axes)))
        return np.asarray(rows.sum(axis=0))

    # ---- cuts without queries -------------------------------------------------------------------

    def _separate_missing(self) -> tuple[GrowingRegions, int, dict[int, int]]:
        """The region of rows without missing numbers, and one per axis for the others, with its axis.

        Whoever shares a class with a missing number publishes everything on that axis.
        """
        regions, known, missing = GrowingRegions([axis.n_bins for axis in self.axes]), 0, {}
        for a, axis in enumerate(self.axes):
            if axis.tree is None and axis.missing > 0:
                known, apart = regions.cut(known, a, 0, axis.missing - 1)
                missing[apart] = a
        return regions, known, missing

    def _grow(self, population: WeightedPopulation, size: float) -> GrowingRegions:
        """Cut every region that has twice this size."""
        regions, known, missing = self._separate_missing()
        region_of = regions.router.route(population.bins)
        waiting = []
        for region in (known, *missing):
            whole = RegionEstimate(population, np.flatnonzero(region_of == region), 0.0)
            waiting.append((region, replace(whole, rows=whole.weight)))
        floor, hidden = Floor(int(size), 1), self._deviation(1, len(self.axes)) / population.n_rows
        while waiting:
            region, whole = waiting.pop()
            histograms = [whole.along(a, axis, regions.within[region][a]) for a, axis in enumerate(self.axes)]
            trim = best_trim(histograms, hidden * whole.rows, self._smallest)
            cut = trim or (best_cut(histograms, floor, BALANCE) if whole.rows >= 2 * size else None)
            if cut:
                parts = regions.cut(region, cut.axis, cut.low, cut.high)
                waiting += self._estimate_parts(whole, parts, cut)
        return regions

    def _estimate_parts(
        self, whole: RegionEstimate, parts: tuple[int, int], cut: Cut
    ) -> list[tuple[int, RegionEstimate]]:
        return [
            (part, whole.part(cut.axis, cut.low, cut.high, inside=inside))
            for part, inside in zip(parts, (True, False), strict=True)
        ]
