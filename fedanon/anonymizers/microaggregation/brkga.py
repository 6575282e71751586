"""BRKGA: a biased random-key genetic algorithm chooses medoids, and the records gather around them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.microaggregation.base import Microaggregation
from fedanon.anonymizers.microaggregation.orders import neighbor_lists
from fedanon.fields import parameter
from fedanon.types import FloatArray, IndexArray, Rng


@ANONYMIZERS.register("brkga")
@dataclass(frozen=True, kw_only=True)
class Brkga(Microaggregation):
    r"""k-medoids by a biased random-key genetic algorithm (Fadel et al.).

    A chromosome is n random keys; the c records with the smallest keys are the medoids, and every other record goes to
    the nearest. The fitness is the sum over the groups of the mean distance to the medoid,

    .. math:: \sum_{i=1}^{c} \frac{1}{n_i} \sum_{j \in G_i} d(x_j, m_i).

    Numbers of groups c from ceil(n / 2k) to floor(n / k) have their own runs. The fitness grows with c, so among the
    runs the partition with least SSE is kept.

    Nearest medoids leave groups below k, so the decoder repairs: such a group takes the record nearest to its medoid
    out of the groups above k until it holds k. The paper states the size rule but not how it is met; with more than
    floor(n / k) groups, which its range of c allows, it cannot be.
    """

    name = "brkga"

    population: int = parameter(100, help="number of chromosomes", at_least=2)
    generations: int = parameter(100, help="number of generations", at_least=1)
    elite: float = parameter(0.2, help="share of the best chromosomes that survive", at_least=0, at_most=0.5)
    mutants: float = parameter(0.15, help="share of new random chromosomes in a generation", at_least=0, at_most=0.5)
    bias: float = parameter(0.7, help="probability that a key comes from the elite parent", at_least=0.5, at_most=1)
    n_counts: int | None = parameter(
        10,
        help="how many numbers of groups to try, spread over the range; none tries all, as the paper does",
        at_least=1,
    )
    workers: int = parameter(1, help="threads that judge chromosomes; they change nothing but the time", at_least=1)

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record: the best over the numbers of groups."""
        from fedanon.anonymizers.microaggregation._groups import sse
        from fedanon.anonymizers.microaggregation._medoids import medoid_groups

        neighbors = neighbor_lists(points, 12 * self.k)
        best, least = np.zeros(len(points), dtype=np.int64), np.inf
        for count in group_counts(len(points), self.k, self.n_counts):
            medoids = self.evolve(points, neighbors, count, rng)
            labels = np.asarray(medoid_groups(points, neighbors, medoids, self.k))
            cost = float(sse(points, labels, count))
            if cost < least:
                best, least = labels, cost
        return best

    def evolve(self, points: FloatArray, neighbors: IndexArray, count: int, rng: Rng) -> IndexArray:
        """The medoids of the best chromosome after the last generation."""
        n_elite = max(1, round(self.elite * self.population))
        n_mutants = min(round(self.mutants * self.population), self.population - n_elite)
        keys = rng.random((self.population, len(points)))
        cost = self._judge(points, neighbors, decode(keys, count))
        for _ in range(self.generations):
            order = np.argsort(cost, kind="stable")
            keys, cost = keys[order], cost[order]
            new = np.concatenate([self._children(keys, n_elite, n_mutants, rng), rng.random((n_mutants, len(points)))])
            fresh = self._judge(points, neighbors, decode(new, count))
            keys, cost = np.concatenate([keys[:n_elite], new]), np.concatenate([cost[:n_elite], fresh])
        return np.asarray(decode(keys[[int(np.argmin(cost))]], count)[0])

    def _judge(self, points: FloatArray, neighbors: IndexArray, medoids: IndexArray) -> FloatArray:
        """The cost of every row of medoids."""
        from fedanon.anonymizers.microaggregation._medoids import mean_distances

        if self.workers == 1:
            return np.asarray(mean_distances(points, neighbors, medoids, self.k))
        parts = np.array_split(medoids, min(self.workers, len(medoids)))
        with ThreadPoolExecutor(self.workers) as pool:
            costs = list(pool.map(lambda part: mean_distances(points, neighbors, part, self.k), parts))
        return np.concatenate(costs)

    def _children(self, keys: FloatArray, n_elite: int, n_mutants: int, rng: Rng) -> FloatArray:
        """Children of one elite and one other parent each."""
        n_children = len(keys) - n_elite - n_mutants
        elite = keys[rng.integers(n_elite, size=n_children)]
        other = keys[rng.integers(n_elite, max(len(keys), n_elite + 1), size=n_children)]
        return crossover(elite, other, rng.random(elite.shape), self.bias)


def decode(keys: FloatArray, count: int) -> IndexArray:
    """The medoids of every chromosome: the positions of its ``count`` smallest keys, in ascending order."""
    chosen = np.argpartition(keys, count - 1, axis=1)[:, :count]
    return np.sort(chosen, axis=1).astype(np.int64)


def crossover(elite: FloatArray, other: FloatArray, draws: FloatArray, bias: float) -> FloatArray:
    """Children: the elite parent's key where the draw is at most ``bias``, else the other's."""
    return np.where(draws <= bias, elite, other)


def group_counts(n: int, k: int, n_counts: int | None) -> list[int]:
    """The numbers of groups to try: max(2, ceil(n / 2k)) .. floor(n / k), at most ``n_counts`` of them."""
    most = n // k
    fewest = min(max(2, -(-n // (2 * k))), most)
    every = np.arange(fewest, most + 1)
    chosen = every if n_counts is None else np.linspace(fewest, most, min(n_counts, len(every))).round().astype(int)
    return [int(count) for count in chosen]
