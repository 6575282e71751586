"""A derivative-free search over the number of groups, each number judged by modified h-means and k-means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.microaggregation.base import Microaggregation
from fedanon.anonymizers.microaggregation.mdav import gsms_groups
from fedanon.fields import parameter
from fedanon.types import FloatArray, IndexArray, Rng

#: how groups are kept at k
Strategy = Literal["fill", "forbid"]
#: a gain must be larger than rounding can explain
LEAST_GAIN = 1e-9


class Solution(NamedTuple):
    """A feasible partition into ``n_groups`` groups and its SSE."""

    labels: IndexArray
    n_groups: int
    sse: float


@ANONYMIZERS.register("derivative_free")
@dataclass(frozen=True, kw_only=True)
class DerivativeFree(Microaggregation):
    """Derivative-free search for the number of groups (Araújo & Aloise, Algorithm 2).

    From the partition of a start heuristic the number of groups is changed by a step gamma: doubled, keeping the
    direction, when that lowers the SSE, halved when neither direction does, until it is below one. A number of groups
    is judged by the partition that h-means and then k-means reach. Groups are kept at k by a routine that fills those
    below at least cost (strategy II of the paper, ``fill``), or by forbidding moves that would leave one below
    (strategy I, ``forbid``).
    """

    name = "derivative_free"

    start: Literal["mdav", "gsms"] = parameter("mdav", help="heuristic whose partition the search starts from")
    gamma: int = parameter(10, help="first step of the number of groups", at_least=1)
    strategy: Strategy = parameter(
        "fill", help="groups below k are filled afterwards, or moves that make one forbidden"
    )
    split: bool = parameter(True, help="split groups of 2k records and more at the end, which the paper leaves whole")

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        labels = np.unique(self._start(points), return_inverse=True)[1]
        first = improved(points, labels, self.k, self.strategy)
        labels = search(points, first, self.k, self.gamma, self.strategy).labels
        return split_large(points, labels, self.k) if self.split else labels

    def _start(self, points: FloatArray) -> IndexArray:
        from fedanon.anonymizers.microaggregation._mdav import mdav

        return gsms_groups(points, self.k, dissolve=True) if self.start == "gsms" else np.asarray(mdav(points, self.k))


def search(points: FloatArray, first: Solution, k: int, gamma: int, strategy: Strategy = "fill") -> Solution:
    """Algorithm 2: the best partition found while the number of groups moves by ever changing steps.

    Numbers of groups lie in [ceil(n / (2k - 1)), floor(n / k)], as that of an optimal partition does. A candidate is
    reached from the best partition so far by splitting or dissolving groups.
    """
    fewest, most = -(-len(points) // (2 * k - 1)), len(points) // k
    best, step, direction = first, float(gamma), 1
    while step >= 1:
        for sign in (direction, -direction):
            count = best.n_groups + sign * int(step)
            if fewest <= count <= most:
                candidate = improved(points, with_count(points, best, count), k, strategy)
                if candidate.sse < best.sse - LEAST_GAIN:
                    best, direction, step = candidate, sign, step * 2
                    break
        else:
            direction, step = 1, step / 2
    return best


def split_large(points: FloatArray, labels: IndexArray, k: int) -> IndexArray:
    """The partition with every group of 2k records or more divided by MDAV; no SSE grows by it."""
    from fedanon.anonymizers.microaggregation._mdav import mdav

    labels = labels.copy()
    for group in np.flatnonzero(np.bincount(labels) >= 2 * k):
        members = np.flatnonzero(labels == group)
        parts = np.asarray(mdav(points[members], k))
        labels[members] = np.where(parts == 0, group, labels.max() + parts)
    return labels


def improved(
    points: FloatArray, labels: IndexArray, k: int, strategy: Strategy = "fill", order: str = "hk"
) -> Solution:
    """The labels improved by h-means, the result by k-means (HM+KM), both kept feasible; ``order`` names them."""
    from fedanon.anonymizers.microaggregation._groups import fill_groups, h_means, k_means, sse

    count = int(labels.max()) + 1
    labels = labels.copy()
    fill_groups(points, labels, count, k)
    best = Solution(labels, count, float(sse(points, labels, count)))
    for heuristic in order:
        best = _descend(points, best, k, {"h": h_means, "k": k_means}[heuristic], strategy)
    return best


def _descend(
    points: FloatArray, best: Solution, k: int, heuristic: Callable[..., None], strategy: Strategy
) -> Solution:
    """Run the heuristic, fill the groups below k, and repeat while the feasible result gets better."""
    from fedanon.anonymizers.microaggregation._groups import fill_groups, sse

    least, count = k if strategy == "forbid" else 0, best.n_groups
    while True:
        current = best.labels.copy()
        heuristic(points, current, count, least)
        fill_groups(points, current, count, k)
        now = float(sse(points, current, count))
        if now >= best.sse - LEAST_GAIN:
            return best
        best = Solution(current, count, now)


def with_count(points: FloatArray, solution: Solution, count: int) -> IndexArray:
    """The partition with another number of groups: the costliest groups split, or the cheapest to give up dissolved.

    The paper leaves open where a new number of groups starts from.
    """
    from fedanon.anonymizers.microaggregation._groups import dissolve_cheapest, split_costliest

    labels = solution.labels.copy()
    if count > solution.n_groups:
        split_costliest(points, labels, solution.n_groups, count)
    else:
        dissolve_cheapest(points, labels, solution.n_groups, count)
    return np.unique(labels, return_inverse=True)[1]
