"""Federated reference: any anonymizer, run on a population that the server draws from counts."""

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
from fedanon.joint import TOGETHER
from fedanon.joint.axes import MOST_BUCKETS, Axis
from fedanon.joint.bounds import expected_need
from fedanon.joint.method import Ask, FederatedAnonymizer
from fedanon.joint.population import Pair, PairQuestion, Population, Tables, best_tree, onto_total, spread
from fedanon.joint.queries import FINAL, Question
from fedanon.joint.regions import BoxRegions, GrowingRegions, NearestBoxes, Regions
from fedanon.types import CountArray, FloatArray, IntArray

#: rows a client should have in a class, in multiples of the threshold below which it is silent
ROOM = 2


@TOGETHER.register("federated_reference")
@dataclass(frozen=True, kw_only=True)
class FederatedReference(FederatedAnonymizer):
    """Draw a reference population from counts of pairs of columns, anonymise it, and recode by its classes.

    Hospitals send counts; the server runs any anonymizer on the population, and its classes become the regions all
    hospitals recode with. One recoding for all: k counts the people of the federation, k_local those of each hospital.
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

    def grow(self, axes: Sequence[Axis], n_clients: int, ask: Ask) -> Regions:
        """The classes of the reference population; where counts are exact, their boxes over the rows there are."""
        exact = self.disclosure.exact
        learning = Learning(axes, ask, noisy=self.noisy, exact=exact)
        population = learning.run()
        if learning.n_rows < self.k:
            raise InfeasibleError(
                f"All clients together seem to have only {learning.n_rows} rows, fewer than k={self.k}: "
                "nothing can be released."
            )
        rng = np.random.default_rng([self.seed, *b"reference"])
        boxes = self._boxes(axes, population.draw(learning.n_rows, rng), n_clients, rng)
        return fitted_boxes(boxes, ask) if exact else BoxRegions(boxes, boxes.low, boxes.high)

    def _boxes(self, axes: Sequence[Axis], bins: IntArray, n_clients: int, rng: np.random.Generator) -> NearestBoxes:
        anonymizer = self._anonymizer(min(self._size(n_clients), len(bins)))
        release = anonymizer.anonymize(reference_table(axes, bins), rng=rng)
        groups = release.groups
        low = np.column_stack([groups.minimum(bins[:, a]) for a in range(len(axes))])
        high = np.column_stack([groups.maximum(bins[:, a]) for a in range(len(axes))])
        both = np.unique(np.stack([low, high], axis=1), axis=0)
        return NearestBoxes(both[:, 0].copy(), both[:, 1].copy(), axes)

    def _size(self, n_clients: int) -> int:
        """People a class of the reference must have so that the final count can confirm k of them."""
        if self.counts == "threshold":
            return max(self.k, ROOM * self.threshold * n_clients)
        return expected_need(self.k, **self.final_noise(n_clients))


def fitted_boxes(boxes: NearestBoxes, ask: Ask) -> BoxRegions:
    """The boxes without those that hold no row, each published as what the rows dealt to it cover."""
    axes, asked = boxes.axes, boxes.leaves.astype(np.int32)
    whole = np.array([axis.n_bins for axis in axes], dtype=np.int32) - 1
    grain = np.full(boxes.low.shape, MOST_BUCKETS, dtype=np.int32)
    question = Question(boxes, asked, np.zeros_like(boxes.low), np.tile(whole, (len(asked), 1)), grain)
    layout, (rows, _) = question.layout(axes), ask(question)
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


# ---- What the server asks to draw a reference population -----------------------------------------

#: buckets of an axis when pairs are compared on a budget, and when those of the tree are counted
COARSE, FINE = 4, 16


class Learning:
    """Questions about all rows.

    Parameters
    ----------
    axes : the quasi-identifiers.
    ask : see :data:`~fedanon.joint.method.Ask`.
    noisy : each count costs epsilon: pairs are compared on coarse counts, and only those of the tree are counted well.
    exact : whether all is told, so that buckets may be as small as can be.
    """

    def __init__(self, axes: Sequence[Axis], ask: Ask, *, noisy: bool, exact: bool) -> None:
        self._axes = axes
        self._ask = ask
        self._noisy = noisy
        self._grain = MOST_BUCKETS if exact else FINE
        self.n_rows = 0

    def run(self) -> Population:
        """Ask, and put together what was answered."""
        weights = self._histograms()
        every = list(combinations(range(len(self._axes)), 2))
        if self._noisy:
            tree = best_tree(self._count(every, COARSE), len(self._axes))
            tables = self._count(sorted((min(edge), max(edge)) for edge in tree), FINE)
        else:
            tables = self._count(every, self._grain)
            tree = best_tree(tables, len(self._axes))
        return Population(weights, self._starts(FINE if self._noisy else self._grain), tables, tree)

    def _histograms(self) -> list[FloatArray]:
        """Weights of the bins of every axis; the first answer, so that it also says how many rows there are."""
        regions, n_axes = GrowingRegions([axis.n_bins for axis in self._axes]), len(self._axes)
        root, grain = np.zeros(1, dtype=np.int32), np.full((1, n_axes), MOST_BUCKETS, dtype=np.int32)
        question = Question(regions.router, root, *regions.boxes(root), grain)
        layout, (rows, _) = question.layout(self._axes), self._ask(question)
        counted = [layout.part(rows, 0, a).sum(axis=0) for a in range(n_axes)]
        self.n_rows = max(int(np.median([counts.sum() for counts in counted])), 1)
        lengths = [axis.n_bins for axis in self._axes]
        return [spread(self._smoothed(c), layout.starts(0, a), lengths[a]) for a, c in enumerate(counted)]

    def _count(self, pairs: Sequence[Pair], grain: int) -> Tables:
        if not pairs:
            return {}
        question = PairQuestion(np.array(pairs, dtype=np.int32), grain)
        counts = self._ask(question)[0].sum(axis=0)
        tables = question.layout(self._axes).tables(counts)
        return {pair: self._smoothed(table.ravel()).reshape(table.shape) for pair, table in tables.items()}

    def _smoothed(self, counts: CountArray) -> FloatArray:
        """None negative, and as many as there are rows."""
        return onto_total(counts.astype(np.float64), float(self.n_rows)) if self._noisy else counts.astype(np.float64)

    def _starts(self, grain: int) -> list[IntArray]:
        return PairQuestion(np.zeros((0, 2), dtype=np.int32), grain).layout(self._axes).starts


# ---- A table of bins -----------------------------------------------------------------------------


def reference_table(axes: Sequence[Axis], bins: IntArray) -> Table:
    """Columns of whole numbers and of numbered nodes; a missing number is the largest."""
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
    """Every leaf with the nodes above it, by number."""
    paths = []
    for leaf in range(tree.n_leaves):
        path = [leaf]
        while tree.parent[path[-1]] != path[-1]:
            path.append(int(tree.parent[path[-1]]))
        paths.append([str(node) for node in path])
    return paths
