"""Reading trees that came over the wire, all of it checked before xgboost sees it; and the model they make.

xgboost trusts its input: a split on a feature that does not exist, or a child that points back to the root, crashes the
process that predicts. What passes here is rebuilt from plain arrays, so no text of another node reaches xgboost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.models.outcome import BINARY, Outcome
from fedanon.models.trees import BASE_SCORE, BEFORE, FIRST_TREE, OBJECTIVES, Tree, digest_of, orders_of, write_trees
from fedanon.types import AnyArray, FeatureArray, IntArray


@dataclass(frozen=True, kw_only=True)
class TreeLimits:
    """What is accepted: numbers of trees, of nodes and levels in each, total bytes, and the size of a leaf weight."""

    min_trees: int = 1
    max_trees: int
    max_nodes: int
    max_depth: int
    max_bytes: int
    max_weight: float


@dataclass(frozen=True, eq=False)
class ReceivedTrees:
    """Checked trees, where they begin in the global model, and the digest of the trees before them."""

    trees: list[Tree] = field(repr=False)
    first_tree: int = 0
    before: str = ""


def read_trees(data: bytes, *, n_features: int, limits: TreeLimits, outcome: Outcome = BINARY) -> ReceivedTrees:
    """The trees of an xgboost JSON model, checked.

    Parameters
    ----------
    data : the JSON text.
    n_features : width of the encoding.
    limits : what is accepted.
    outcome : what the trees must predict.

    Raises
    ------
    UpdateRejectedError
        If anything is out of order; the message names what, never a number from the update.
    """
    if not 0 < len(data) <= limits.max_bytes:
        _reject("it is empty or too large")
    learner = _child(_parse(data), "learner")
    _check_learner(learner, n_features, outcome)
    model = _child(_child(learner, "gradient_booster"), "model")
    trees = model.get("trees")
    if not isinstance(trees, list) or not limits.min_trees <= len(trees) <= limits.max_trees:
        _reject("the number of trees is not allowed")
    _check_counts(model, len(trees), outcome)
    read = [_tree(tree, place, n_features, limits) for place, tree in enumerate(trees)]
    first, before = _beginning(learner)
    if first % outcome.n_scores:
        _reject("the place of its first tree is wrong")
    return ReceivedTrees(read, first, before)


# ---- The document --------------------------------------------------------------------------------


def _reject(reason: str) -> NoReturn:
    raise UpdateRejectedError(f"The trees are refused: {reason}.")


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        _reject("it is not JSON, or nested too deeply")


def _reject_constant(name: str) -> NoReturn:
    _reject(f"it holds {name}")


def _child(document: Any, key: str) -> Mapping[str, Any]:
    child = document.get(key) if isinstance(document, dict) else None
    if not isinstance(child, dict):
        _reject(f"the part {key!r} is missing")
    return child


def _check_learner(learner: Mapping[str, Any], n_features: int, outcome: Outcome) -> None:
    if _child(learner, "objective").get("name") != OBJECTIVES[outcome.kind]:
        _reject("the objective is another")
    if _child(learner, "gradient_booster").get("name") != "gbtree":
        _reject("the booster is another")
    sizes = _child(learner, "learner_model_param")
    if _whole(sizes.get("num_feature")) != n_features:
        _reject("the number of features is another")
    classes = outcome.classes if outcome.kind == "multiclass" else 0
    if _whole(sizes.get("num_class")) != classes or _whole(sizes.get("num_target", "1")) != 1:
        _reject("the number of classes is another")
    if set(_scores(sizes.get("base_score"))) != {BASE_SCORE}:
        _reject("the base score is another")


def _check_counts(model: Mapping[str, Any], count: int, outcome: Outcome) -> None:
    sizes = _child(model, "gbtree_model_param")
    if _whole(sizes.get("num_parallel_tree")) != 1 or _whole(sizes.get("num_trees")) != count:
        _reject("the declared number of trees is wrong")
    iterations, scores = orders_of(count, outcome)
    if count % outcome.n_scores or model.get("tree_info") != scores or model.get("iteration_indptr") != iterations:
        _reject("the order of the trees is wrong")


def _beginning(learner: Mapping[str, Any]) -> tuple[int, str]:
    notes = _child(learner, "attributes")
    place, before = _whole(notes.get(FIRST_TREE, "0")), notes.get(BEFORE, "")
    if place is None or not isinstance(before, str) or len(before) > 64:
        _reject("the place of its first tree is wrong")
    return place, before


def _whole(text: Any) -> int | None:
    """A whole number of at most nine digits that xgboost wrote as text."""
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 9 else None


def _scores(text: Any) -> list[float]:
    """The base score, which newer versions of xgboost write in brackets, once per class."""
    try:
        return [float(part) for part in text.strip("[]").split(",")] if isinstance(text, str) else []
    except ValueError:
        return []


# ---- One tree ------------------------------------------------------------------------------------


def _tree(document: Any, place: int, n_features: int, limits: TreeLimits) -> Tree:
    if not isinstance(document, dict) or document.get("id") != place:
        _reject("the trees are not numbered in order")
    n_nodes = _n_nodes(document, n_features, limits)
    tree = Tree(
        left=_integers(document, "left_children", n_nodes),
        right=_integers(document, "right_children", n_nodes),
        feature=_integers(document, "split_indices", n_nodes),
        value=_floats(document, "split_conditions", n_nodes),
        default_left=_integers(document, "default_left", n_nodes),
    )
    for key in ("base_weights", "loss_changes", "sum_hessian"):
        _floats(document, key, n_nodes)
    if _integers(document, "split_type", n_nodes).any() or document.get("categories"):
        _reject("it has categorical splits")
    _check_shape(tree, limits.max_depth)
    _check_contents(tree, n_features, limits.max_weight)
    return tree


def _n_nodes(document: Mapping[str, Any], n_features: int, limits: TreeLimits) -> int:
    sizes = _child(document, "tree_param")
    n_nodes = _whole(sizes.get("num_nodes"))
    if n_nodes is None or not 1 <= n_nodes <= limits.max_nodes:
        _reject("the number of nodes is not allowed")
    if _whole(sizes.get("num_feature")) != n_features or _whole(sizes.get("num_deleted")) != 0:
        _reject("the sizes of a tree are wrong")
    if _whole(sizes.get("size_leaf_vector", "1")) not in (0, 1):
        _reject("its leaves hold more than one weight")
    return n_nodes


def _floats(document: Mapping[str, Any], key: str, n_nodes: int) -> FeatureArray:
    numbers = _numbers(document, key, n_nodes)
    # beyond the range of a float32: as wrong as infinity
    if not (np.abs(numbers) < 3e38).all():
        _reject(f"the array {key!r} holds numbers that are not finite")
    return numbers.astype(np.float32)


def _integers(document: Mapping[str, Any], key: str, n_nodes: int) -> IntArray:
    numbers = _numbers(document, key, n_nodes)
    if numbers.dtype.kind != "i" or numbers.min() < -(2**31) or numbers.max() >= 2**31:
        _reject(f"the array {key!r} holds something else than small whole numbers")
    return numbers.astype(np.int32)


def _numbers(document: Mapping[str, Any], key: str, n_nodes: int) -> AnyArray:
    numbers = document.get(key)
    if not isinstance(numbers, list) or len(numbers) != n_nodes:
        _reject(f"the array {key!r} has another length than the tree")
    try:
        array = np.array(numbers)
    except (ValueError, OverflowError):
        _reject(f"the array {key!r} holds something else than numbers")
    if array.ndim != 1 or array.dtype.kind not in "if":
        _reject(f"the array {key!r} holds something else than numbers")
    return array


def _check_shape(tree: Tree, max_depth: int) -> None:
    """Every node but the root is the child of one earlier node: so there is no cycle and no way out of the arrays."""
    if not np.array_equal(tree.left < 0, tree.right < 0) or min(tree.left.min(), tree.right.min()) < -1:
        _reject("a node has one child only")
    inner = np.flatnonzero(~tree.leaves)
    children = np.concatenate([tree.left[inner], tree.right[inner]])
    if not np.array_equal(np.sort(children), np.arange(1, len(tree))) or (children <= np.tile(inner, 2)).any():
        _reject("the children of its nodes do not form a tree")
    level, depth = np.zeros(1, dtype=np.int32), 0
    while (level := level[~tree.leaves[level]]).size:
        level, depth = np.concatenate([tree.left[level], tree.right[level]]), depth + 1
        if depth > max_depth:
            _reject("a tree is too deep")


def _check_contents(tree: Tree, n_features: int, max_weight: float) -> None:
    asked = tree.feature[~tree.leaves]
    if ((asked < 0) | (asked >= n_features)).any():
        _reject("it asks for a feature that does not exist")
    if (np.abs(tree.value[tree.leaves]) > max_weight).any():
        _reject("a leaf weight is larger than honest training can give")
    if ((tree.default_left != 0) & (tree.default_left != 1)).any():
        _reject("a default direction is neither left nor right")


# ---- The global model ----------------------------------------------------------------------------


@dataclass
class TreeModel:
    """All trees of a global model in the order in which they were added.

    A node that keeps its margins needs only the trees it has not seen, so messages need not grow with the number of
    rounds: ``to_bytes(first_tree=n)`` leaves out the first n. ``to_bytes()`` serves any node, also one that missed
    rounds or kept margins of a run that was resumed from an older checkpoint: it starts from scratch.
    """

    n_features: int
    trees: list[Tree] = field(default_factory=list, repr=False)
    outcome: Outcome = BINARY
    _digests: list[str] = field(default_factory=lambda: [""], repr=False)

    def __post_init__(self) -> None:
        given, self.trees = self.trees, []
        self.extend(given)

    def __len__(self) -> int:
        return len(self.trees)

    def append(self, updates: Sequence[Sequence[Tree]], weights: Sequence[float]) -> None:
        """Add the new trees of a round's nodes.

        Each node's leaf weights are multiplied by its share of ``weights`` (its number of examples), so that a round
        moves the model by the mean of the nodes' steps. Without that, as in Flower's bagging, ten nodes with the
        learning rate .1 take one step of rate 1.0. A single node (cyclic training) has the share 1.
        """
        shares = np.asarray(weights, dtype=np.float64)
        if len(shares) != len(updates) or not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
            raise ConfigError("The weights must be finite, not negative and not all zero, one per update.")
        for trees, share in zip(updates, shares / shares.sum(), strict=True):
            self.extend(tree.scaled(share) for tree in trees)

    def extend(self, trees: Iterable[Tree]) -> None:
        """Add trees as they are."""
        for tree in trees:
            self.trees.append(tree)
            self._digests.append(digest_of([tree], self._digests[-1]))

    def to_bytes(self, first_tree: int = 0) -> bytes:
        """The trees from ``first_tree`` on, as JSON that also holds where they begin."""
        rest, before = self.trees[first_tree:], self._digests[first_tree]
        return write_trees(rest, n_features=self.n_features, first_tree=first_tree, before=before, outcome=self.outcome)

    def to_array(self, first_tree: int = 0) -> NDArray[np.uint8]:
        """The bytes as an array: the only parameter of the model on the wire."""
        return np.frombuffer(self.to_bytes(first_tree), dtype=np.uint8)

    @classmethod
    def from_bytes(cls, data: bytes, *, n_features: int, limits: TreeLimits, outcome: Outcome = BINARY) -> TreeModel:
        """Read a whole model, such as a checkpoint."""
        read = read_trees(data, n_features=n_features, limits=limits, outcome=outcome)
        return cls(n_features, read.trees, outcome)
