"""The global model on the server: what is sent to a node, what is accepted from it, and how updates combine.

Two kinds: arrays that are averaged by one of Flower's strategies, and trees that are united.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Message
from numpy.typing import NDArray

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.federated import wire
from fedanon.federated.settings import RunSettings
from fedanon.federated.strategies import make_strategy
from fedanon.federated.validation import check_arrays, far_movers
from fedanon.models.base import Model, Parameters
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.tree_model import TreeModel
from fedanon.models.tree_validation import read_trees

Listener = tuple[int, str]


class GlobalModel(ABC):
    """What the server holds between rounds."""

    @property
    @abstractmethod
    def parameters(self) -> Parameters:
        """The whole model."""

    @abstractmethod
    def restore(self, parameters: Parameters) -> None:
        """Go on from a checkpoint."""

    @abstractmethod
    def arrays_for(self, listener: Listener) -> Parameters:
        """What a node still needs for a kind of message."""

    @abstractmethod
    def forget(self, node: int) -> None:
        """A node failed and may have lost what it held."""

    @abstractmethod
    def check(self, arrays: Parameters) -> None:
        """Raise UpdateRejectedError unless an update can be used."""

    @abstractmethod
    def outliers(self, updates: Mapping[int, Parameters]) -> dict[int, str]:
        """Updates that are sound alone but absurd beside the others, with the reason."""

    @abstractmethod
    def combine(self, round_number: int, replies: Sequence[Message], weights: Sequence[int]) -> None:
        """Take in the accepted updates of a round."""


class AveragedArrays(GlobalModel):
    """Arrays combined by a strategy of Flower's."""

    def __init__(self, model: Model, width: int, settings: RunSettings) -> None:
        self._parameters = model.initial(width)
        self._strategy = make_strategy(settings.strategy, settings.nested("strategy"))

    @property
    def parameters(self) -> Parameters:
        """The arrays."""
        return self._parameters

    def restore(self, parameters: Parameters) -> None:
        """Take the checkpoint's arrays."""
        check_arrays(parameters, self._parameters)
        self._parameters = parameters

    def arrays_for(self, listener: Listener) -> Parameters:
        """All arrays, every time."""
        return self._parameters

    def forget(self, node: int) -> None:
        """Nothing is remembered of a node."""

    def check(self, arrays: Parameters) -> None:
        """Shapes, types and bounds of the global arrays."""
        check_arrays(arrays, self._parameters)

    def outliers(self, updates: Mapping[int, Parameters]) -> dict[int, str]:
        """Updates that move absurdly far."""
        moved = far_movers(updates, self._parameters)
        return {node: f"it moves {factor:.3g} times as far as the median" for node, factor in moved.items()}

    def combine(self, round_number: int, replies: Sequence[Message], weights: Sequence[int]) -> None:
        """Flower's aggregation; an aggregator may widen the type, the model keeps its own."""
        record, _ = self._strategy.aggregate_train(round_number, replies)
        assert record is not None  # there is at least one reply
        merged = [a.astype(b.dtype) for a, b in zip(wire.unpack_arrays(record), self._parameters, strict=True)]
        check_arrays(merged, self._parameters)
        self._parameters = merged


class UnitedTrees(GlobalModel):
    """Trees of all clients; a node is sent only those it has not seen for that kind of message."""

    def __init__(self, model: BoostedTrees, width: int, settings: RunSettings) -> None:
        if settings.strategy != "fedavg":
            raise ConfigError(f"The strategy {settings.strategy!r} averages arrays; trees are united by 'fedavg'.")
        self._model = model
        self._trees = TreeModel(width)
        self._known: dict[Listener, int] = {}

    @property
    def parameters(self) -> Parameters:
        """All trees."""
        return [self._trees.to_array()]

    def restore(self, parameters: Parameters) -> None:
        """Take the checkpoint's trees."""
        data, limits = parameters[0].tobytes(), self._model.model_limits()
        self._trees = TreeModel.from_bytes(data, n_features=self._trees.n_features, limits=limits)

    def arrays_for(self, listener: Listener) -> Parameters:
        """The trees added since the last message of that kind to that node."""
        known = self._known.get(listener, 0)
        self._known[listener] = len(self._trees)
        return [self._trees.to_array(first_tree=known)]

    def forget(self, node: int) -> None:
        """Send it everything again."""
        for listener in [listener for listener in self._known if listener[0] == node]:
            del self._known[listener]

    def check(self, arrays: Parameters) -> None:
        """Structure and bounds of every tree, before xgboost sees it."""
        self._read(arrays)

    def outliers(self, updates: Mapping[int, Parameters]) -> dict[int, str]:
        """None: the weight of a tree is bounded already."""
        return {}

    def combine(self, round_number: int, replies: Sequence[Message], weights: Sequence[int]) -> None:
        """Add every client's trees, scaled by its share of the examples."""
        updates = [self._read(wire.read_arrays(reply)) for reply in replies]
        self._trees.append(updates, [float(weight) for weight in weights])

    def _read(self, arrays: Sequence[NDArray[Any]]) -> Any:
        if len(arrays) != 1 or arrays[0].dtype != np.uint8 or arrays[0].ndim != 1:
            raise UpdateRejectedError("it does not hold one array of bytes")
        data = arrays[0].tobytes()
        return read_trees(data, n_features=self._trees.n_features, limits=self._model.update_limits()).trees


def global_model(model: Model, width: int, settings: RunSettings) -> GlobalModel:
    """The kind a model needs."""
    if isinstance(model, BoostedTrees):
        return UnitedTrees(model, width, settings)
    return AveragedArrays(model, width, settings)
