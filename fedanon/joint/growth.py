"""The server's part of the growth: ask open regions for counts, cut them, ask their parts, until none can be cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedanon.joint.axes import MOST_BUCKETS, Axis
from fedanon.joint.cuts import Cut, Floor, Histogram, best_cut
from fedanon.joint.method import Ask
from fedanon.joint.queries import Layout, Question
from fedanon.joint.regions import GrowingRegions
from fedanon.types import CountArray

#: rows a client should have in a bucket, in multiples of the threshold below which it is silent
ROOM = 2


class Growth:
    """Regions grown breadth-first on the counts of all clients.

    Parameters
    ----------
    axes : the quasi-identifiers.
    floor : how many people a part must keep.
    exact : whether counts are exact, so that boxes shrink to the rows in them.
    threshold : counts below it are not told; 1 where all are.
    max_rounds : questions that may be asked.
    """

    def __init__(self, axes: Sequence[Axis], floor: Floor, *, exact: bool, threshold: int, max_rounds: int) -> None:
        self.axes = axes
        self.regions = GrowingRegions([axis.n_bins for axis in axes])
        self._floor = floor
        self._exact = exact
        self._threshold = threshold
        self._max_rounds = max_rounds

    def run(self, ask: Ask) -> GrowingRegions:
        """Grow until nothing can be cut or all questions are spent."""
        sizes = {0: MOST_BUCKETS}
        for _ in range(self._max_rounds):
            if not sizes:
                break
            sizes = self._round(ask, sizes)
        return self.regions

    def _round(self, ask: Ask, grains: dict[int, int]) -> dict[int, int]:
        """One question for the open regions; the regions to ask next, with how finely."""
        open_ = np.array(list(grains), dtype=np.int32)
        grain = np.repeat(np.array(list(grains.values()), dtype=np.int32)[:, None], len(self.axes), axis=1)
        question = Question(self.regions.router, open_, *self.regions.boxes(open_), grain)
        layout, (rows, people) = question.layout(self.axes), ask(question)
        following: dict[int, int] = {}
        for position, region in enumerate(open_.tolist()):
            histograms = self._histograms(layout, rows, people, position)
            if self._exact:
                self._shrink(region, histograms)
            cut = best_cut(histograms, self._floor)
            if cut:
                following |= self._apply(region, cut, histograms[cut.axis])
        return following

    def _histograms(self, layout: Layout, rows: CountArray, people: CountArray, position: int) -> list[Histogram]:
        # a client with fewer than k_local people in a region suppresses them, whatever becomes of the region
        counted = layout.part(people, position, 0).sum(axis=1) >= self._floor.k_local
        return [
            Histogram(
                axis,
                layout.starts(position, a),
                int(layout.question.high[position, a]),
                part := layout.part(rows, position, a)[counted],
                part if people is rows else layout.part(people, position, a)[counted],
                self._exact,
            )
            for a, axis in enumerate(self.axes)
        ]

    def _shrink(self, region: int, histograms: Sequence[Histogram]) -> None:
        """The smallest box over the rows that were counted."""
        extents = np.array([histogram.extent() for histogram in histograms], dtype=np.int32)
        self.regions.low[region], self.regions.high[region] = extents[:, 0].copy(), extents[:, 1].copy()

    def _apply(self, region: int, cut: Cut, histogram: Histogram) -> dict[int, int]:
        parts = self.regions.cut(region, cut.axis, cut.low, cut.high)
        inside = (histogram.starts >= cut.low) & (histogram.starts <= cut.high)
        sizes = [int(histogram.people[:, side].sum()) for side in (inside, ~inside)]
        # exact boxes shrink once more, so also parts that are too small to be cut are asked
        asked = [self._exact or size >= 2 * self._floor.k for size in sizes]
        return {
            part: self._grain(size, max(len(histogram.people), 1))
            for part, size, ask in zip(parts, sizes, asked, strict=True)
            if ask
        }

    def _grain(self, size: int, n_clients: int) -> int:
        """As fine as can be where all is told; else so coarse that most buckets reach the threshold."""
        if self._exact:
            return MOST_BUCKETS
        return int(np.clip(size // (n_clients * self._threshold * ROOM), 2, MOST_BUCKETS))
