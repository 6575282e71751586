"""Strategies: Flower's own ways to combine arrays, by name, with sensible defaults."""

from __future__ import annotations

from typing import Any

from flwr.serverapp import strategy as flower

from fedanon.errors import ConfigError, UnknownComponentError
from fedanon.federated import wire

#: class and default settings; `num_malicious_nodes` is the number of hostile clients a rule has to survive
STRATEGIES: dict[str, tuple[type[flower.FedAvg], dict[str, Any]]] = {
    "fedavg": (flower.FedAvg, {}),
    "fedprox": (flower.FedProx, {"proximal_mu": 0.1}),
    "fedmedian": (flower.FedMedian, {}),
    "trimmed_mean": (flower.FedTrimmedAvg, {"beta": 0.2}),
    "krum": (flower.Krum, {"num_malicious_nodes": 1}),
    "multikrum": (flower.MultiKrum, {"num_malicious_nodes": 1, "num_nodes_to_select": 5}),
    "bulyan": (flower.Bulyan, {"num_malicious_nodes": 1}),
}


def make_strategy(name: str, settings: dict[str, Any]) -> flower.FedAvg:
    """The strategy of that name; its sampling is not used, the server chooses the clients itself."""
    if name not in STRATEGIES:
        raise UnknownComponentError(f"Unknown strategy {name!r}. Known: {', '.join(STRATEGIES)}.")
    component, defaults = STRATEGIES[name]
    try:
        return component(arrayrecord_key=wire.ARRAYS, weighted_by_key=wire.WEIGHT, **(defaults | settings))
    except TypeError:
        raise ConfigError(f"The strategy {name!r} does not take these settings: {', '.join(settings)}.") from None
