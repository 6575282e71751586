"""Means of many kinds: weighted, trimmed, medians, and means of the updates that stand closest together.

All but ``robust`` give the same bits as the strategies of Flower by these names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import parameter
from fedanon.learning.strategies import STRATEGIES, Strategy
from fedanon.models.base import Model, Parameters
from fedanon.types import FloatArray

#: weight of FedProx's proximal term, where a run does not say
PROXIMAL_MU = 0.1


def weighted_mean(updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
    """The mean of each array, summed in the order of the updates."""
    total = sum(weights)
    merged: Parameters = []
    for arrays, weight in zip(updates, weights, strict=True):
        parts = [array * (weight / total) for array in arrays]
        merged = [sum_ + part for sum_, part in zip(merged, parts, strict=True)] if merged else parts
    return merged


@STRATEGIES.register("fedavg")
@dataclass(frozen=True, kw_only=True)
class WeightedMean(Strategy):
    """The mean of all updates, weighted by their numbers of examples (McMahan et al. 2017)."""

    name = "fedavg"
    aggregations = frozenset({"mean", "trees"})

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The weighted mean."""
        return weighted_mean(updates, weights)

    def choose(
        self, vectors: Callable[[], FloatArray], weights: Sequence[float]
    ) -> tuple[Sequence[int], Sequence[float]]:
        """All of them."""
        return range(len(weights)), weights


@STRATEGIES.register("fedprox")
@dataclass(frozen=True, kw_only=True)
class Proximal(Strategy):
    """The weighted mean of nodes that are held near the global model while they train (Li et al. 2020)."""

    name = "fedprox"

    proximal_mu: float = parameter(PROXIMAL_MU, help="weight of the proximal term", at_least=0.0)

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The weighted mean; what sets this strategy apart is in the nodes' model."""
        return weighted_mean(updates, weights)

    def model_settings(self, model: type[Model], chosen: dict[str, Any]) -> dict[str, Any]:
        """With the proximal term, unless the model's own settings have one."""
        if "mu" not in {entry.name for entry in fields(model)}:
            raise ConfigError(f"The strategy 'fedprox' needs a model with a proximal term; {model.name!r} has none.")
        return {"mu": self.proximal_mu, **chosen}


@STRATEGIES.register("fedmedian")
@dataclass(frozen=True, kw_only=True)
class Median(Strategy):
    """The median of every coordinate (Yin et al. 2018)."""

    name = "fedmedian"

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The coordinate-wise median."""
        return [np.asarray(np.median(np.stack(arrays), axis=0)) for arrays in zip(*updates, strict=True)]


@STRATEGIES.register("trimmed_mean")
@dataclass(frozen=True, kw_only=True)
class TrimmedMean(Strategy):
    """The plain mean of every coordinate without its smallest and largest values (Yin et al. 2018)."""

    name = "trimmed_mean"

    beta: float = parameter(0.2, help="share of the values cut off at either end", at_least=0.0, at_most=0.49)

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The coordinate-wise trimmed mean."""
        cut = int(self.beta * len(updates))
        end = len(updates) - cut
        parted = (np.partition(np.stack(arrays), (cut, end - 1), 0) for arrays in zip(*updates, strict=True))
        return [np.asarray(np.mean(values[cut:end], axis=0)) for values in parted]


# ---- Krum: which of many updates stand closest together ------------------------------------------


def krum_scores(vectors: FloatArray, n_malicious: int) -> FloatArray:
    r"""The sum of squared distances of each vector to its nearest neighbors.

    .. math:: s_i = \sum_{j \to i} |v_i - v_j|^2

    over the :math:`n - f - 2` vectors nearest to :math:`v_i`, at least one (Blanchard, El Mhamdi, Guerraoui and Stainer
    2017). With fewer than three vectors there is nobody to compare with and all scores are 0.
    """
    count = len(vectors)
    if count < 3:
        return np.zeros(count)
    distances = np.square(vectors[:, None, :] - vectors[None, :, :]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)  # a vector is not its own neighbor
    nearest = np.sort(distances, axis=1)[:, : max(1, count - n_malicious - 2)]
    return np.asarray(nearest.sum(axis=1))


def closest_together(vectors: FloatArray, *, malicious_share: float, kept_share: float) -> list[int]:
    """Places of the vectors with the lowest scores (Multi-Krum), at least one, in order.

    Parameters
    ----------
    vectors : one per row.
    malicious_share : share of them that may be false.
    kept_share : share of them that is kept.
    """
    count = len(vectors)
    scores = krum_scores(vectors, math.floor(malicious_share * count))
    kept = np.argsort(scores, kind="stable")[: max(1, math.ceil(kept_share * count))]
    return sorted(int(place) for place in kept)


def flower_krum(vectors: NDArray[Any], n_malicious: int, n_kept: int) -> list[int]:
    """Places of the vectors with the lowest scores, best first, by Flower's arithmetic.

    It works out distances as :math:`|x|^2 + |y|^2 - 2xy`, which differs from :func:`krum_scores` in the last bits, and
    takes the nearest vector for the vector itself.
    """
    norms = np.square(vectors).sum(axis=1)
    distances = norms[:, None] + norms[None, :] - 2 * vectors @ vectors.T
    n_closest = max(1, len(vectors) - n_malicious - 2)
    scores = [np.sum(row[np.argsort(row)[1 : n_closest + 1]]) for row in distances]
    return [int(place) for place in np.argsort(scores)[:n_kept]]


def as_vectors(updates: Sequence[Parameters]) -> NDArray[Any]:
    """All numbers of each update in one row."""
    return np.array([np.concatenate([array.ravel() for array in arrays]) for arrays in updates])


@STRATEGIES.register("multikrum")
@dataclass(frozen=True, kw_only=True)
class MultiKrum(Strategy):
    """The weighted mean of a number of updates that stand closest together (Blanchard et al. 2017)."""

    name = "multikrum"

    num_malicious_nodes: int = parameter(1, help="malicious nodes to survive", at_least=0)
    num_nodes_to_select: int = parameter(5, help="updates that are averaged", at_least=1)

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The weighted mean of those that are kept."""
        kept = flower_krum(as_vectors(updates), self.num_malicious_nodes, self.num_nodes_to_select)
        return weighted_mean([updates[place] for place in kept], [weights[place] for place in kept])


@STRATEGIES.register("krum")
@dataclass(frozen=True, kw_only=True)
class Krum(Strategy):
    """The one update that stands closest to the others (Blanchard et al. 2017)."""

    name = "krum"

    num_malicious_nodes: int = parameter(1, help="malicious nodes to survive", at_least=0)

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """That update."""
        (kept,) = flower_krum(as_vectors(updates), self.num_malicious_nodes, 1)
        return weighted_mean([updates[kept]], [weights[kept]])


@STRATEGIES.register("bulyan")
@dataclass(frozen=True, kw_only=True)
class Bulyan(Strategy):
    """Of the updates Krum keeps, the mean of those nearest to every coordinate's median (El Mhamdi et al. 2018)."""

    name = "bulyan"

    num_malicious_nodes: int = parameter(1, help="malicious nodes to survive", at_least=0)

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The coordinate-wise mean around the median of those that are kept."""
        needed = 4 * self.num_malicious_nodes + 3
        if len(updates) < needed:
            raise InfeasibleError(f"The strategy 'bulyan' needs at least {needed} updates; {len(updates)} are usable.")
        n_kept = len(updates) - 2 * self.num_malicious_nodes
        kept = flower_krum(as_vectors(updates), self.num_malicious_nodes, n_kept)
        nearest = n_kept - 2 * self.num_malicious_nodes
        merged: Parameters = []
        for arrays in zip(*(updates[place] for place in kept), strict=True):
            stacked = np.stack(arrays)
            away = np.abs(stacked - np.median(stacked, axis=0))
            places = np.argpartition(away, nearest - 1, axis=0)[:nearest]
            merged.append(np.asarray(np.mean(np.take_along_axis(stacked, places, axis=0), axis=0)))
        return merged


@STRATEGIES.register("robust")
@dataclass(frozen=True, kw_only=True)
class RobustMean(Strategy):
    """The plain mean of the updates that stand closest together: Multi-Krum for a share of malicious nodes.

    It differs from ``multikrum`` in three ways: how many nodes it survives follows from the number of updates, those
    that are kept count the same whatever number of examples they declared, and trees can be chosen by it too
    (:mod:`fedanon.learning.aggregators`).
    """

    name = "robust"
    aggregations = frozenset({"mean", "trees"})

    malicious_share: float = parameter(
        0.3, help="share of the nodes that may be malicious", at_least=0.0, at_most=1.0, aliases=("hostile_share",)
    )
    kept_share: float = parameter(0.5, help="share of the updates that are averaged", at_least=0.0, at_most=1.0)

    def kept(self, vectors: FloatArray) -> list[int]:
        """Places of the updates, given as one vector each, that are taken in."""
        return closest_together(vectors, malicious_share=self.malicious_share, kept_share=self.kept_share)

    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The mean of the arrays of those that are kept."""
        kept = self.kept(as_vectors(updates))
        chosen = zip(*(updates[place] for place in kept), strict=True)
        return [np.asarray(np.mean(arrays, axis=0)) for arrays in chosen]

    def choose(
        self, vectors: Callable[[], FloatArray], weights: Sequence[float]
    ) -> tuple[Sequence[int], Sequence[float]]:
        """Those that are kept, each with the same weight."""
        kept = self.kept(vectors())
        return kept, [1.0] * len(kept)
