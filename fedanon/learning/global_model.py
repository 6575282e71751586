"""The global model on the server: what is sent to a node, what is accepted from it, and how updates combine.

Two kinds: arrays that are averaged by one of Flower's strategies, and trees that are united.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Message
from numpy.typing import NDArray

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.federated import wire
from fedanon.federated.strategies import RobustMean, make_strategy
from fedanon.learning.settings import RunSettings
from fedanon.learning.validation import check_arrays, far_movers
from fedanon.models.base import Model, Parameters
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.tree_validation import TreeModel, read_trees
from fedanon.models.trees import Tree
from fedanon.types import FloatArray

Listener = tuple[int, str]
#: arrays, or trees
ReadUpdate = Any
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


# ---- Trees as vectors ----------------------------------------------------------------------------
#
# The server has no rows. The trees of a round name the places that matter: for every leaf of every tree there is one
# probe, a row that falls into it. Two clients whose trees answer all probes alike have learned the same, however their
# trees are built; a tree grown on flipped labels answers the other way round.


Rows = NDArray[np.float32]
#: of one feature: from, and below
Bounds = dict[int, tuple[float, float]]
#: features of an encoding lie between 0 and 1
WHOLE = (0.0, 1.0)


def probe_rows(trees: Iterable[Tree], width: int) -> Rows:
    """One row for every leaf: in the middle of what the leaf asks of a feature, 0 where it asks nothing."""
    boxes = [bounds for tree in trees for bounds in _leaf_bounds(tree)]
    rows = np.zeros((len(boxes), width), dtype=np.float32)
    for row, bounds in zip(rows, boxes, strict=True):
        for feature, (low, high) in bounds.items():
            row[feature] = (low + high) / 2 if low > 0.0 or high <= 0.0 else 0.0
    return rows


def _leaf_bounds(tree: Tree) -> Iterator[Bounds]:
    """What each leaf asks of the features, in the order of a walk from the root."""
    left, right, feature, value = (a.tolist() for a in (tree.left, tree.right, tree.feature, tree.value))
    waiting: list[tuple[int, Bounds]] = [(0, {})]
    while waiting:
        node, bounds = waiting.pop()
        if left[node] < 0:
            yield bounds
            continue
        low, high = bounds.get(feature[node], WHOLE)
        waiting.append((right[node], {**bounds, feature[node]: (max(low, value[node]), high)}))
        waiting.append((left[node], {**bounds, feature[node]: (low, min(high, value[node]))}))


def margins(trees: Sequence[Tree], rows: Rows) -> NDArray[np.float64]:
    """The sum of the trees' weights for every row."""
    total = np.zeros(len(rows))
    for tree in trees:
        node = np.zeros(len(rows), dtype=np.intp)
        while (inner := np.flatnonzero(~tree.leaves[node])).size:
            at = node[inner]
            below = rows[inner, tree.feature[at]] < tree.value[at]
            node[inner] = np.where(below, tree.left[at], tree.right[at])
        total += tree.value[node]
    return total
