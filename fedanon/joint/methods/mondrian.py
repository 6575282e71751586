"""Federated Mondrian: regions are cut top-down on the counts of all nodes.

In each round the server asks for histograms of the open regions, cuts each where that saves most, and goes on with the
parts. With noise few queries can be afforded, and :mod:`fedanon.joint.private_growth` takes the place of this growth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.joint import JOINT_METHODS
from fedanon.joint.axes import MOST_BUCKETS, Axis
from fedanon.joint.bounds import required_size
from fedanon.joint.cuts import Cut, Floor, Histogram, best_cut
from fedanon.joint.guide import read_weights
from fedanon.joint.method import JointMethod, RunQuery
from fedanon.joint.private_growth import PrivateGrowth
from fedanon.joint.queries import FINAL, RegionLayout, RegionQuery
from fedanon.joint.regions import GrowingRegions, Regions
from fedanon.types import CountArray

#: queries of the growth; with joining, the final count and the plan no run has more than 40 messages
MAX_ROUNDS = 36
#: rows that a node should have in a bucket, in multiples of the threshold below which it reports 0
ROOM = 2


@JOINT_METHODS.register("federated_mondrian")
@dataclass(frozen=True, kw_only=True)
class FederatedMondrian(JointMethod):
    """Cut the space of quasi-identifiers top-down on the counts of all nodes (after LeFevre et al. 2006).

    One recoding for all nodes: k counts the people of the federation, k_local those of each node.
    """

    name: ClassVar[str] = "federated_mondrian"
    #: histograms of all rows, counts of ever smaller regions, the final count
    shares: ClassVar[Mapping[int, float]] = {1: 0.08, 2: 0.06, 3: 0.1, FINAL: 0.76}

    weights: str = parameter(
        "",
        help="how much the loss of each quasi-identifier counts, in order, such as 2,1,0.5; empty: alike",
        optional=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        read_weights(self.weights)

    def weigh(self, axes: Sequence[Axis]) -> Sequence[Axis]:
        """The axes with the weights, whose mean is made 1."""
        weights = read_weights(self.weights)
        if not weights:
            return axes
        if len(weights) != len(axes):
            raise ConfigError(f"weights has {len(weights)} numbers for {len(axes)} quasi-identifiers.")
        mean = sum(weights) / len(weights)
        return [replace(axis, weight=weight / mean) for axis, weight in zip(axes, weights, strict=True)]

    def grow(self, axes: Sequence[Axis], n_nodes: int, run_query: RunQuery) -> Regions:
        """Query until no region can be cut; with noise, three times."""
        disclosure = self.disclosure
        if self.noisy:
            need = required_size(self.k, **self.final_noise(n_nodes))
            return PrivateGrowth(axes, need, budget=self.budget, draws=disclosure.draws(n_nodes)).run(run_query)
        # unless every node reports how many people it has, k_local is kept by suppression alone
        floor = Floor(self.k, self.k_local if self.counts == "plain" else 1)
        threshold = 1 if disclosure.exact else self.threshold
        return Growth(axes, floor, exact=disclosure.exact, threshold=threshold, max_rounds=MAX_ROUNDS).run(run_query)


class Growth:
    """Grows regions breadth-first on the counts of all nodes.

    Parameters
    ----------
    axes : the quasi-identifiers.
    floor : how many people a part must keep.
    exact : whether counts are exact, so that boxes shrink to the rows in them.
    threshold : smaller counts are reported as 0; 1 where all are exact.
    max_rounds : the most queries.
    """

    def __init__(self, axes: Sequence[Axis], floor: Floor, *, exact: bool, threshold: int, max_rounds: int) -> None:
        self.axes = axes
        self.regions = GrowingRegions([axis.n_bins for axis in axes])
        self._floor = floor
        self._exact = exact
        self._threshold = threshold
        self._max_rounds = max_rounds

    def run(self, run_query: RunQuery) -> GrowingRegions:
        """Grow until no region can be cut or no query is left."""
        grains = {0: MOST_BUCKETS}
        for _ in range(self._max_rounds):
            if not grains:
                break
            grains = self._run_round(run_query, grains)
        return self.regions

    def _run_round(self, run_query: RunQuery, grains: dict[int, int]) -> dict[int, int]:
        """One query for the open regions; the open regions of the next round, each with its grain."""
        open_ = np.array(list(grains), dtype=np.int32)
        grain = np.repeat(np.array(list(grains.values()), dtype=np.int32)[:, None], len(self.axes), axis=1)
        query = RegionQuery(self.regions.router, open_, *self.regions.boxes(open_), grain)
        layout, (rows, people) = query.layout(self.axes), run_query(query)
        following: dict[int, int] = {}
        for position, region in enumerate(open_.tolist()):
            histograms = self._histograms(layout, rows, people, position)
            if self._exact:
                self._shrink(region, histograms)
            cut = best_cut(histograms, self._floor)
            if cut:
                following |= self._apply(region, cut, histograms[cut.axis])
        return following

    def _histograms(self, layout: RegionLayout, rows: CountArray, people: CountArray, position: int) -> list[Histogram]:
        # a node with fewer than k_local people in a region suppresses them, whatever becomes of the region
        counted = layout.part(people, position, 0).sum(axis=1) >= self._floor.k_local
        return [
            Histogram(
                axis,
                layout.starts(position, a),
                int(layout.query.high[position, a]),
                part := layout.part(rows, position, a)[counted],
                part if people is rows else layout.part(people, position, a)[counted],
                self._exact,
            )
            for a, axis in enumerate(self.axes)
        ]

    def _shrink(self, region: int, histograms: Sequence[Histogram]) -> None:
        """Reduce the box of a region to the smallest one over the rows that were counted."""
        extents = np.array([histogram.extent() for histogram in histograms], dtype=np.int32)
        self.regions.low[region], self.regions.high[region] = extents[:, 0].copy(), extents[:, 1].copy()

    def _apply(self, region: int, cut: Cut, histogram: Histogram) -> dict[int, int]:
        parts = self.regions.cut(region, cut.axis, cut.low, cut.high)
        inside = (histogram.starts >= cut.low) & (histogram.starts <= cut.high)
        sizes = [int(histogram.people[:, side].sum()) for side in (inside, ~inside)]
        # exact boxes shrink once more, so parts that are too small to be cut are queried as well
        stay_open = [self._exact or size >= 2 * self._floor.k for size in sizes]
        return {
            part: self._grain(size, max(len(histogram.people), 1))
            for part, size, stays in zip(parts, sizes, stay_open, strict=True)
            if stays
        }

    def _grain(self, size: int, n_nodes: int) -> int:
        """As fine as possible where counts are exact, else so coarse that most buckets reach the threshold."""
        if self._exact:
            return MOST_BUCKETS
        return int(np.clip(size // (n_nodes * self._threshold * ROOM), 2, MOST_BUCKETS))
