"""Federated reference: any anonymizer, run on a population that the server draws from counts.

Three queries describe the population (:class:`PopulationQueries`); the classes that the anonymizer makes of it become
the regions by which all nodes recode. Where counts are exact, one more query shrinks their boxes to the rows in them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import KAnonymizer
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import build, parameter
from fedanon.joint import JOINT_METHODS
from fedanon.joint.axes import MOST_BUCKETS, Axis
from fedanon.joint.bounds import required_size
from fedanon.joint.method import JointMethod, RunQuery
from fedanon.joint.population import Pair, Tables, TreePopulation, best_tree, project_onto_total, spread_over_bins
from fedanon.joint.queries import FINAL, PairQuery, RegionQuery
from fedanon.joint.regions import BoxRegions, GrowingRegions, NearestBoxes, Regions
from fedanon.types import CountArray, FloatArray, IntArray

#: rows that a node should have in a class, in multiples of the threshold below which it reports 0
ROOM = 2
#: buckets of an axis when pairs are compared on a budget, and when those of the tree are counted
COARSE, FINE = 4, 16


@JOINT_METHODS.register("federated_reference")
@dataclass(frozen=True, kw_only=True)
class FederatedReference(JointMethod):
    """Draw a reference population from counts of pairs of columns, anonymize it, and recode by its classes.

    Nodes send counts; the server runs any anonymizer on the population, and its classes become the regions by which all
    nodes recode. One recoding for all nodes: k counts the people of the federation, k_local those of each node.
    """

    name: ClassVar[str] = "federated_reference"
    #: histograms of all columns, all pairs coarsely, the pairs of the tree, the final count
    shares: ClassVar[Mapping[int, float]] = {1: 0.05, 2: 0.05, 3: 0.1, FINAL: 0.8}

    reference: str = parameter("mondrian", help="anonymizer of the reference population; it must take k")
    reference_settings: str = parameter("{}", help="its other parameters, as JSON")
    seed: int = parameter(0, help="seed of the reference population", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._anonymizer(self.k)

    def _anonymizer(self, k: int) -> KAnonymizer:
        component = ANONYMIZERS[self.reference]
        if not issubclass(component, KAnonymizer):
            raise ConfigError(f"The reference {self.reference!r} does not promise k-anonymity.")
        try:
            chosen: dict[str, Any] = {**json.loads(self.reference_settings), "k": k}
        except (ValueError, TypeError):
            raise ConfigError("reference_settings is not a JSON object.") from None
        return build(component, chosen)

    def grow(self, axes: Sequence[Axis], n_nodes: int, run_query: RunQuery) -> Regions:
        """The classes of the reference population; where counts are exact, with boxes over the rows that exist."""
        exact = self.disclosure.exact
        queries = PopulationQueries(axes, run_query, noisy=self.noisy, exact=exact)
        population = queries.run()
        if queries.n_rows < self.k:
            raise InfeasibleError(
                f"All nodes together seem to have only {queries.n_rows} rows, fewer than k={self.k}: "
                "nothing can be released."
            )
        rng = np.random.default_rng([self.seed, *b"reference"])
        boxes = self._boxes(axes, population.draw(queries.n_rows, rng), n_nodes, rng)
        return shrink_boxes(boxes, run_query) if exact else BoxRegions(boxes, boxes.low, boxes.high)

    def _boxes(self, axes: Sequence[Axis], bins: IntArray, n_nodes: int, rng: np.random.Generator) -> NearestBoxes:
        anonymizer = self._anonymizer(min(self._size(n_nodes), len(bins)))
        release = anonymizer.anonymize(make_reference_table(axes, bins), rng=rng)
        groups = release.groups
        low = np.column_stack([groups.minimum(bins[:, a]) for a in range(len(axes))])
        high = np.column_stack([groups.maximum(bins[:, a]) for a in range(len(axes))])
        both = np.unique(np.stack([low, high], axis=1), axis=0)
        return NearestBoxes(both[:, 0].copy(), both[:, 1].copy(), axes)

    def _size(self, n_nodes: int) -> int:
        """People that a class of the reference needs so that the final count can confirm k of them."""
        if self.counts == "threshold":
            return max(self.k, ROOM * self.threshold * n_nodes)
        return required_size(self.k, **self.final_noise(n_nodes))


def shrink_boxes(boxes: NearestBoxes, run_query: RunQuery) -> BoxRegions:
    """The boxes that hold rows, each published as the smallest box over the rows routed to it."""
    axes, asked = boxes.axes, boxes.leaves.astype(np.int32)
    whole = np.array([axis.n_bins for axis in axes], dtype=np.int32) - 1
    grain = np.full(boxes.low.shape, MOST_BUCKETS, dtype=np.int32)
    query = RegionQuery(boxes, asked, np.zeros_like(boxes.low), np.tile(whole, (len(asked), 1)), grain)
    layout, (rows, _) = query.layout(axes), run_query(query)
    total = rows.sum(axis=0)[None]
    low, high = np.zeros_like(boxes.low), np.zeros_like(boxes.high)
    for a in range(len(axes)):
        starts = layout.starts(0, a)
        ends = np.append(starts[1:] - 1, whole[a])
        holds = np.array([layout.part(total, r, a)[0] > 0 for r in range(len(asked))])
        low[:, a] = starts[holds.argmax(axis=1)]
        high[:, a] = ends[holds.shape[1] - 1 - holds[:, ::-1].argmax(axis=1)]
    used = np.array([layout.part(total, r, 0).any() for r in range(len(asked))])
    kept = NearestBoxes(boxes.low[used], boxes.high[used], axes)
    return BoxRegions(kept, low[used], high[used])


# ---- the population ------------------------------------------------------------------------------


class PopulationQueries:
    """The queries that describe all rows, and the population they lead to.

    Parameters
    ----------
    axes : the quasi-identifiers.
    run_query : see :data:`~fedanon.joint.method.RunQuery`.
    noisy : each count costs epsilon: pairs are compared on coarse counts, and only those of the tree are counted well.
    exact : whether counts are exact, so that buckets may be as small as possible.
    """

    def __init__(self, axes: Sequence[Axis], run_query: RunQuery, *, noisy: bool, exact: bool) -> None:
        self._axes = axes
        self._run_query = run_query
        self._noisy = noisy
        self._grain = MOST_BUCKETS if exact else FINE
        self.n_rows = 0

    def run(self) -> TreePopulation:
        """Run the queries and combine their answers."""
        weights = self._histograms()
        every = list(combinations(range(len(self._axes)), 2))
        if self._noisy:
            tree = best_tree(self._count(every, COARSE), len(self._axes))
            tables = self._count(sorted((min(edge), max(edge)) for edge in tree), FINE)
        else:
            tables = self._count(every, self._grain)
            tree = best_tree(tables, len(self._axes))
        return TreePopulation(weights, self._starts(FINE if self._noisy else self._grain), tables, tree)

    def _histograms(self) -> list[FloatArray]:
        """Weights of the bins of every axis; as the first answer it also gives the number of rows."""
        regions, n_axes = GrowingRegions([axis.n_bins for axis in self._axes]), len(self._axes)
        root, grain = np.zeros(1, dtype=np.int32), np.full((1, n_axes), MOST_BUCKETS, dtype=np.int32)
        query = RegionQuery(regions.router, root, *regions.boxes(root), grain)
        layout, (rows, _) = query.layout(self._axes), self._run_query(query)
        counted = [layout.part(rows, 0, a).sum(axis=0) for a in range(n_axes)]
        self.n_rows = max(int(np.median([counts.sum() for counts in counted])), 1)
        lengths = [axis.n_bins for axis in self._axes]
        return [spread_over_bins(self._clean(c), layout.starts(0, a), lengths[a]) for a, c in enumerate(counted)]

    def _count(self, pairs: Sequence[Pair], grain: int) -> Tables:
        if not pairs:
            return {}
        query = PairQuery(np.array(pairs, dtype=np.int32), grain)
        counts = self._run_query(query)[0].sum(axis=0)
        tables = query.layout(self._axes).tables(counts)
        return {pair: self._clean(table.ravel()).reshape(table.shape) for pair, table in tables.items()}

    def _clean(self, counts: CountArray) -> FloatArray:
        """Counts of which none is negative, with the number of rows as their sum."""
        return (
            project_onto_total(counts.astype(np.float64), float(self.n_rows))
            if self._noisy
            else counts.astype(np.float64)
        )

    def _starts(self, grain: int) -> list[IntArray]:
        return PairQuery(np.zeros((0, 2), dtype=np.int32), grain).layout(self._axes).starts


# ---- the population as a table -------------------------------------------------------------------


def make_reference_table(axes: Sequence[Axis], bins: IntArray) -> Table:
    """The rows as columns of whole numbers and of numbered taxonomy nodes; a missing number is the largest."""
    names = [f"axis{i}" for i in range(len(axes))]
    attributes = tuple(_attribute(name, axis) for name, axis in zip(names, axes, strict=True))
    columns = {
        a.name: bins[:, i] if isinstance(a, Numeric) else pd.Series(bins[:, i]).map(str).astype("str")
        for i, a in enumerate(attributes)
    }
    return Table.from_frame(pd.DataFrame(columns), Schema(attributes))


def _attribute(name: str, axis: Axis) -> Numeric | Categorical:
    if axis.tree is None:
        return Numeric(name, Role.QUASI_IDENTIFYING, 0.0, float(max(axis.n_bins - 1, 1)), integer=True)
    return Categorical(name, Role.QUASI_IDENTIFYING, Hierarchy.from_paths(_paths(axis.tree)))


def _paths(tree: Hierarchy) -> list[list[str]]:
    """Every leaf with the taxonomy nodes above it, by number."""
    paths = []
    for leaf in range(tree.n_leaves):
        path = [leaf]
        while tree.parent[path[-1]] != path[-1]:
            path.append(int(tree.parent[path[-1]]))
        paths.append([str(node) for node in path])
    return paths
