"""Strategies: Flower's own ways to combine arrays, by name, with sensible defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp import strategy as flower
from numpy.typing import NDArray

from fedanon.errors import ConfigError, UnknownComponentError
from fedanon.federated import wire
from fedanon.learning.krum import closest_together
from fedanon.learning.node import PROXIMAL_MU


class WeightedMean(flower.FedAvg):
    """Flower's FedAvg, the same to the bit, without its second look at replies the server has read and checked."""

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The mean of the arrays, weighted by the numbers of examples."""
        contents: list[Any] = [reply.content for reply in replies]
        total = sum(content[wire.METRICS][wire.WEIGHT] for content in contents)
        merged: dict[str, NDArray[Any]] = {}
        for content in contents:
            share = content[wire.METRICS][wire.WEIGHT] / total
            for name, array in content[wire.ARRAYS].items():
                part = array.numpy() * share
                merged[name] = merged[name] + part if name in merged else part
        return wire.read_record(merged.values()), None


class RobustMean(flower.FedAvg):
    """The plain mean of the updates that stand closest together: Multi-Krum for a share of hostile clients.

    It differs from Flower's MultiKrum in three ways: how many clients it survives follows from the number of updates,
    those that are kept count the same whatever number of examples they declared, and trees can be chosen by it too
    (:mod:`fedanon.learning.global_model`).

    Parameters
    ----------
    hostile_share : share of the clients that may be hostile.
    kept_share : share of the updates that are averaged.
    """

    def __init__(self, hostile_share: float = 0.3, kept_share: float = 0.5, **more: Any) -> None:
        super().__init__(**more)
        for name, share in (("hostile_share", hostile_share), ("kept_share", kept_share)):
            if not 0.0 <= share <= 1.0:
                raise ConfigError(f"The setting {name!r} of the strategy 'robust' must lie between 0 and 1.")
        self.hostile_share = hostile_share
        self.kept_share = kept_share

    def kept(self, vectors: NDArray[np.float64]) -> list[int]:
        """Places of the updates, given as one vector each, that are taken in."""
        return closest_together(vectors, hostile_share=self.hostile_share, kept_share=self.kept_share)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The mean of the arrays of the clients that are kept."""
        contents: list[Any] = [reply.content for reply in replies]
        updates = [[array.numpy() for array in content[wire.ARRAYS].values()] for content in contents]
        kept = self.kept(np.array([np.concatenate([array.ravel() for array in arrays]) for arrays in updates]))
        chosen = zip(*(updates[place] for place in kept), strict=True)
        return wire.read_record(np.mean(arrays, axis=0) for arrays in chosen), None


#: class and default settings; `num_malicious_nodes` is the number of hostile clients a rule has to survive
STRATEGIES: dict[str, tuple[type[flower.FedAvg], dict[str, Any]]] = {
    "fedavg": (WeightedMean, {}),
    # a mean too; what sets it apart, the proximal term, is in the nodes' model
    "fedprox": (flower.FedProx, {"proximal_mu": PROXIMAL_MU}),
    "fedmedian": (flower.FedMedian, {}),
    "trimmed_mean": (flower.FedTrimmedAvg, {"beta": 0.2}),
    "krum": (flower.Krum, {"num_malicious_nodes": 1}),
    "multikrum": (flower.MultiKrum, {"num_malicious_nodes": 1, "num_nodes_to_select": 5}),
    "bulyan": (flower.Bulyan, {"num_malicious_nodes": 1}),
    "robust": (RobustMean, {}),
}


def make_strategy(name: str, settings: dict[str, Any]) -> flower.FedAvg:
    """The strategy of that name; its sampling is not used, the server chooses the clients itself."""
    if name not in STRATEGIES:
        raise UnknownComponentError(f"Unknown strategy {name!r}. Known: {', '.join(STRATEGIES)}.")
    component, defaults = STRATEGIES[name]
    try:
        return component(
            arrayrecord_key=wire.ARRAYS,
            weighted_by_key=wire.WEIGHT,
            train_metrics_aggr_fn=lambda _replies, _key: MetricRecord(),  # an update has no other metrics
            **(defaults | settings),
        )
    except TypeError:
        raise ConfigError(f"The strategy {name!r} does not take these settings: {', '.join(settings)}.") from None
