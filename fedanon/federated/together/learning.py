"""What the server asks to draw a reference population: histograms of all columns, and counts of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from fedanon.data.hierarchy import FloatArray, IntArray
from fedanon.federated.together.axes import MOST_BUCKETS, Axis
from fedanon.federated.together.margins import onto_total, spread
from fedanon.federated.together.method import Ask
from fedanon.federated.together.pairs import PairQuestion
from fedanon.federated.together.population import Pair, Population, Tables, best_tree
from fedanon.federated.together.questions import Counts, Question
from fedanon.federated.together.regions import GrowingRegions

#: buckets of an axis when pairs are compared on a budget, and when those of the tree are counted
COARSE, FINE = 4, 16


class Learning:
    """Questions about all rows.

    Parameters
    ----------
    axes : the quasi-identifiers.
    ask : see :data:`~fedanon.federated.together.method.Ask`.
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

    def _smoothed(self, counts: Counts) -> FloatArray:
        """None negative, and as many as there are rows."""
        return onto_total(counts.astype(np.float64), float(self.n_rows)) if self._noisy else counts.astype(np.float64)

    def _starts(self, grain: int) -> list[IntArray]:
        return PairQuestion(np.zeros((0, 2), dtype=np.int32), grain).layout(self._axes).starts
