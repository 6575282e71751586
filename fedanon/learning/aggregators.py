"""Aggregators: the global model on the server, what a node is sent, what is accepted from it, and how updates combine.

One per kind of model (:attr:`fedanon.models.base.Model.aggregation`): arrays that are averaged, and trees that are
joined. Everything is plain arrays; who carries them to the nodes does not matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.learning.strategies import STRATEGIES, Strategy
from fedanon.learning.validation import MAX_MOVE, check_arrays, far_movers
from fedanon.models.base import Model, Parameters
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.tree_validation import TreeModel, read_trees
from fedanon.models.trees import Tree
from fedanon.registry import Registry
from fedanon.types import FeatureArray, FloatArray

#: a node, and the kind of message it is sent
Listener = tuple[int, str]
#: arrays, or trees
ReadUpdate = Any

#: by the `aggregation` of a model
AGGREGATORS: Registry[type[Aggregator]] = Registry("aggregation", group="fedanon.aggregators")


def make_aggregator(model: Model, width: int, strategy: Strategy, *, max_move: float = MAX_MOVE) -> Aggregator:
    """The aggregator a model needs.

    Parameters
    ----------
    model : what is trained.
    width : number of features.
    strategy : how updates combine.
    max_move : a step this many times the round's median is left out; 0 leaves none out.
    """
    if model.aggregation not in strategy.aggregations:
        known = [name for name, component in STRATEGIES.items() if model.aggregation in component.aggregations]
        raise ConfigError(
            f"The strategy {strategy.name!r} does not combine updates of the model {model.name!r}. "
            f"Use {' or '.join(map(repr, known))}."
        )
    return AGGREGATORS[model.aggregation](model, width, strategy, max_move=max_move)


class Aggregator(ABC):
    """What the server holds between rounds; see :func:`make_aggregator` for the parameters."""

    def __init__(self, model: Model, width: int, strategy: Strategy, *, max_move: float = MAX_MOVE) -> None:
        self.model = model
        self.width = width
        self.strategy = strategy
        self.max_move = max_move

    @property
    @abstractmethod
    def parameters(self) -> Parameters:
        """The whole model."""

    @abstractmethod
    def restore(self, parameters: Parameters) -> None:
        """Go on from a checkpoint."""

    @abstractmethod
    def pending_updates(self, listener: Listener) -> Parameters:
        """What a node has not been sent yet in messages of that kind; from now on it has."""

    def forget(self, node: int) -> None:  # noqa: B027 (most remember nothing of a node)
        """A node failed and may have lost what it held."""

    @abstractmethod
    def read(self, arrays: Parameters) -> ReadUpdate:
        """What an update says; raise UpdateRejectedError unless it can be used."""

    def outliers(self, updates: Mapping[int, ReadUpdate]) -> dict[int, str]:
        """Updates that are sound alone but absurd beside the others, with the reason."""
        return {}

    @abstractmethod
    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """Each update as a vector, so that nodes can be compared."""

    @abstractmethod
    def combine(self, round_number: int, updates: Sequence[ReadUpdate], weights: Sequence[float]) -> None:
        """Take in the updates of a round, as they were read, with the numbers of examples they were learned from."""


@AGGREGATORS.register("mean")
class ArrayAggregator(Aggregator):
    """Arrays of the same shapes at every node, combined by a strategy."""

    def __init__(self, model: Model, width: int, strategy: Strategy, *, max_move: float = MAX_MOVE) -> None:
        super().__init__(model, width, strategy, max_move=max_move)
        self._parameters = model.initial(width)

    @property
    def parameters(self) -> Parameters:
        """The arrays."""
        return self._parameters

    def restore(self, parameters: Parameters) -> None:
        """Take the checkpoint's arrays."""
        check_arrays(parameters, self._parameters)
        self._parameters = parameters

    def pending_updates(self, listener: Listener) -> Parameters:
        """All arrays, every time."""
        return self._parameters

    def read(self, arrays: Parameters) -> ReadUpdate:
        """The arrays, of the shapes, types and bounds of the global ones."""
        check_arrays(arrays, self._parameters)
        return arrays

    def outliers(self, updates: Mapping[int, ReadUpdate]) -> dict[int, str]:
        """Updates that move absurdly far."""
        moved = far_movers(updates, self._parameters, self.max_move)
        return {node: f"it moves {factor:.3g} times as far as the median" for node, factor in moved.items()}

    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """The way each update goes from the global arrays."""
        pairs = {node: zip(arrays, self._parameters, strict=True) for node, arrays in updates.items()}
        return {node: np.concatenate([(a - b).ravel() for a, b in pair]) for node, pair in pairs.items()}

    def combine(self, round_number: int, updates: Sequence[ReadUpdate], weights: Sequence[float]) -> None:
        """What the strategy makes of them; it may widen the type, the model keeps its own."""
        self._replace(self.strategy.combine(updates, weights))

    def _replace(self, merged: Parameters) -> None:
        typed = [array.astype(known.dtype) for array, known in zip(merged, self._parameters, strict=True)]
        check_arrays(typed, self._parameters)
        self._parameters = typed


@AGGREGATORS.register("trees")
class TreeAggregator(Aggregator):
    """Trees of all nodes; a node is sent only those it has not seen in that kind of message."""

    model: BoostedTrees

    def __init__(self, model: Model, width: int, strategy: Strategy, *, max_move: float = MAX_MOVE) -> None:
        super().__init__(model, width, strategy, max_move=max_move)
        self._trees = TreeModel(width, outcome=model.outcome)
        self._known: dict[Listener, int] = {}
        self._written: dict[int, Parameters] = {}  # for each first tree, until trees are added

    @property
    def parameters(self) -> Parameters:
        """All trees."""
        return [self._trees.to_array()]

    def restore(self, parameters: Parameters) -> None:
        """Take the checkpoint's trees."""
        data, limits = parameters[0].tobytes(), self.model.model_limits()
        self._trees = TreeModel.from_bytes(data, n_features=self.width, limits=limits, outcome=self.model.outcome)
        self._written.clear()

    def pending_updates(self, listener: Listener) -> Parameters:
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
        data, limits = arrays[0].tobytes(), self.model.update_limits()
        return read_trees(data, n_features=self.width, limits=limits, outcome=self.model.outcome).trees

    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """What each node's trees say about a row for every leaf of the round, class by class."""
        rows = probe_rows([tree for trees in updates.values() for tree in trees], self.width)
        step = self.model.outcome.n_scores
        return {
            node: np.concatenate([margins(trees[c::step], rows) for c in range(step)])
            for node, trees in updates.items()
        }

    def combine(self, round_number: int, updates: Sequence[ReadUpdate], weights: Sequence[float]) -> None:
        """Add the trees of every node, or of those the strategy chooses, the way the model merges them."""

        def vectors() -> FloatArray:
            return np.array(list(self.directions(dict(enumerate(updates))).values()))

        places, shares = self.strategy.choose(vectors, weights)
        self._written.clear()
        self.model.merge_trees(self._trees, [updates[place] for place in places], shares)


# ---- Trees as vectors ----------------------------------------------------------------------------
#
# The server has no rows. The trees of a round name the places that matter: for every leaf of every tree there is one
# probe, a row that falls into it. Two nodes whose trees answer all probes alike have learned the same, however their
# trees are built; a tree grown on flipped labels answers the other way round.


#: of one feature: from, and below
Bounds = dict[int, tuple[float, float]]
#: features of an encoding lie between 0 and 1
WHOLE = (0.0, 1.0)


def probe_rows(trees: Iterable[Tree], width: int) -> FeatureArray:
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


def margins(trees: Sequence[Tree], rows: FeatureArray) -> FloatArray:
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
