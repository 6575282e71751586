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
from fedanon.federated.strategies import RobustMean, make_strategy
from fedanon.federated.tree_probes import margins, probe_rows
from fedanon.federated.validation import check_arrays, far_movers
from fedanon.models.base import Model, Parameters
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.tree_model import TreeModel
from fedanon.models.tree_validation import read_trees

Listener = tuple[int, str]
#: arrays, or trees
ReadUpdate = Any
FloatArray = NDArray[np.float64]
#: the ways to combine updates that also unite trees
TREE_STRATEGIES = ("fedavg", "robust")


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
    def read(self, arrays: Parameters) -> ReadUpdate:
        """What an update says; raise UpdateRejectedError unless it can be used."""

    @abstractmethod
    def outliers(self, updates: Mapping[int, ReadUpdate]) -> dict[int, str]:
        """Updates that are sound alone but absurd beside the others, with the reason."""

    @abstractmethod
    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """Each update as a vector, so that clients can be compared."""

    @abstractmethod
    def combine(self, round_number: int, accepted: Sequence[tuple[Message, ReadUpdate]]) -> None:
        """Take in the accepted replies of a round, with what was read of them; their weights are checked already."""


class AveragedArrays(GlobalModel):
    """Arrays combined by a strategy of Flower's."""

    def __init__(self, model: Model, width: int, settings: RunSettings) -> None:
        self._parameters = model.initial(width)
        self._strategy = make_strategy(settings.strategy, settings.nested("strategy"))
        self._max_move = settings.max_move

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

    def read(self, arrays: Parameters) -> ReadUpdate:
        """The arrays, of the shapes, types and bounds of the global ones."""
        check_arrays(arrays, self._parameters)
        return arrays

    def outliers(self, updates: Mapping[int, ReadUpdate]) -> dict[int, str]:
        """Updates that move absurdly far."""
        moved = far_movers(updates, self._parameters, self._max_move)
        return {node: f"it moves {factor:.3g} times as far as the median" for node, factor in moved.items()}

    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """The way each update goes from the global arrays."""
        pairs = {node: zip(arrays, self._parameters, strict=True) for node, arrays in updates.items()}
        return {node: np.concatenate([(a - b).ravel() for a, b in pair]) for node, pair in pairs.items()}

    def combine(self, round_number: int, accepted: Sequence[tuple[Message, ReadUpdate]]) -> None:
        """Flower's aggregation; an aggregator may widen the type, the model keeps its own."""
        replies = [wire.with_read_arrays(reply, arrays) for reply, arrays in accepted]
        record, _ = self._strategy.aggregate_train(round_number, replies)
        assert record is not None  # there is at least one reply
        merged = [record[str(i)].numpy().astype(known.dtype) for i, known in enumerate(self._parameters)]
        check_arrays(merged, self._parameters)
        self._parameters = merged


class UnitedTrees(GlobalModel):
    """Trees of all clients; a node is sent only those it has not seen for that kind of message."""

    def __init__(self, model: BoostedTrees, width: int, settings: RunSettings) -> None:
        if settings.strategy not in TREE_STRATEGIES:
            known = " or ".join(map(repr, TREE_STRATEGIES))
            raise ConfigError(f"The strategy {settings.strategy!r} averages arrays; trees are united by {known}.")
        self._strategy = make_strategy(settings.strategy, settings.nested("strategy"))
        self._model = model
        self._trees = TreeModel(width)
        self._known: dict[Listener, int] = {}
        self._written: dict[int, Parameters] = {}  # for each first tree, until trees are added

    @property
    def parameters(self) -> Parameters:
        """All trees."""
        return [self._trees.to_array()]

    def restore(self, parameters: Parameters) -> None:
        """Take the checkpoint's trees."""
        data, limits = parameters[0].tobytes(), self._model.model_limits()
        self._trees = TreeModel.from_bytes(data, n_features=self._trees.n_features, limits=limits)
        self._written.clear()

    def arrays_for(self, listener: Listener) -> Parameters:
        """The trees added since the last message of that kind to that node."""
        known = self._known.get(listener, 0)
        self._known[listener] = len(self._trees)
        if known not in self._written:
            self._written[known] = [self._trees.to_array(first_tree=known)]
        return self._written[known]

    def forget(self, node: int) -> None:
        """Send it everything again."""
        for listener in [listener for listener in self._known if listener[0] == node]:
            del self._known[listener]

    def read(self, arrays: Parameters) -> ReadUpdate:
        """The trees; structure and bounds of every one are checked before xgboost sees it."""
        if len(arrays) != 1 or arrays[0].dtype != np.uint8 or arrays[0].ndim != 1:
            raise UpdateRejectedError("it does not hold one array of bytes")
        data, limits = arrays[0].tobytes(), self._model.update_limits()
        return read_trees(data, n_features=self._trees.n_features, limits=limits).trees

    def outliers(self, updates: Mapping[int, ReadUpdate]) -> dict[int, str]:
        """None: the weight of a tree is bounded already."""
        return {}

    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """What each client's trees say about a row for every leaf of the round."""
        rows = probe_rows([tree for trees in updates.values() for tree in trees], self._trees.n_features)
        return {node: margins(trees, rows) for node, trees in updates.items()}

    def combine(self, round_number: int, accepted: Sequence[tuple[Message, ReadUpdate]]) -> None:
        """Add the trees the way the model unites them: every client's, or those of the clients that agree."""
        updates = [trees for _, trees in accepted]
        weights = [float(wire.read_metrics(reply)[wire.WEIGHT]) for reply, _ in accepted]
        if isinstance(self._strategy, RobustMean):
            said = self.directions(dict(enumerate(updates)))
            updates = [updates[place] for place in self._strategy.kept(np.array(list(said.values())))]
            weights = [1.0] * len(updates)
        self._written.clear()
        self._model.unite(self._trees, updates, weights)


def global_model(model: Model, width: int, settings: RunSettings) -> GlobalModel:
    """The kind a model needs."""
    if isinstance(model, BoostedTrees):
        return UnitedTrees(model, width, settings)
    return AveragedArrays(model, width, settings)
