"""Trees: what prediction needs of a boosted tree, and how it is written for the wire and for xgboost.

What travels is the JSON of an xgboost model, so that any xgboost >= 2.0 can read it, with all that prediction does not
need set to zero: the weights and Hessians that xgboost stores would reveal how many people fall into each leaf.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.models.outcome import BINARY, Outcome, OutcomeKind
from fedanon.types import BoolArray, IntArray

#: what xgboost minimizes, by the kind of target
OBJECTIVES: dict[OutcomeKind, str] = {
    "binary": "binary:logistic",
    "multiclass": "multi:softprob",
    "regression": "reg:squarederror",
}
BASE_SCORE = 0.5
#: attributes that hold where in the global model the written trees begin, and the digest of the trees before them
FIRST_TREE = "fedanon_first_tree"
BEFORE = "fedanon_before"
#: what xgboost writes as the parent of a root
NO_PARENT = 2**31 - 1

_HEAD = (
    '{"learner":{"attributes":{"%s":"%s","%s":"%d"},"feature_names":[],"feature_types":[],"gradient_booster":{"model":{'
    '"gbtree_model_param":{"num_parallel_tree":"1","num_trees":"%d"},"iteration_indptr":%s,"tree_info":%s,"trees":['
)
_TAIL = (
    ']},"name":"gbtree"},"learner_model_param":{"base_score":"%s","boost_from_average":"0","num_class":"%d",'
    '"num_feature":"%d","num_target":"1"},"objective":{"name":"%s",%s}},'
    '"version":[2,0,0]}'
)
_LOSS_SETTINGS = '"reg_loss_param":{"scale_pos_weight":"1"}'


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree in arrays over its nodes; node 0 is the root.

    Parameters
    ----------
    left, right : children of each node, -1 at a leaf.
    feature : the feature that an inner node compares.
    value : the threshold of an inner node (below it goes left), the weight of a leaf.
    default_left : whether a missing feature goes left.
    """

    left: IntArray
    right: IntArray
    feature: IntArray
    value: NDArray[np.float32]
    default_left: IntArray

    @classmethod
    def leaf(cls, weight: float) -> Tree:
        """A tree that gives every row the same weight."""
        none, zero = np.array([-1], dtype=np.int32), np.zeros(1, dtype=np.int32)
        return cls(left=none, right=none, feature=zero, value=np.array([weight], dtype=np.float32), default_left=zero)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def leaves(self) -> BoolArray:
        """Mask of the leaves."""
        return self.left < 0

    def scaled(self, factor: float) -> Tree:
        """The same tree with the leaf weights multiplied."""
        return replace(self, value=np.where(self.leaves, self.value * np.float32(factor), self.value))

    @cached_property
    def text(self) -> str:
        """The tree in xgboost's JSON, without the opening brace and the id, which depends on its place."""
        nodes, zeros = len(self), [0.0] * len(self)
        parents = np.full(nodes, NO_PARENT)
        inner = np.flatnonzero(~self.leaves)
        parents[self.left[inner]] = parents[self.right[inner]] = inner
        document: dict[str, Any] = {
            "base_weights": zeros,
            "categories": [],
            "categories_nodes": [],
            "categories_segments": [],
            "categories_sizes": [],
            "default_left": self.default_left.tolist(),
            "left_children": self.left.tolist(),
            "loss_changes": zeros,
            "parents": parents.tolist(),
            "right_children": self.right.tolist(),
            # nine digits carry a float32 exactly
            "split_conditions": [float(f"{value:.9g}") for value in self.value.tolist()],
            "split_indices": self.feature.tolist(),
            "split_type": [0] * nodes,
            "sum_hessian": zeros,
        }
        return json.dumps(document, separators=(",", ":"))[1:]


def digest_of(trees: Iterable[Tree], before: str = "") -> str:
    """A chain of hashes: equal for equal trees after trees of the digest ``before``; empty for no trees."""
    for tree in trees:
        before = hashlib.sha256(f"{before}{tree.text}".encode()).hexdigest()
    return before


def write_trees(
    trees: Sequence[Tree], *, n_features: int, first_tree: int = 0, before: str = "", outcome: Outcome = BINARY
) -> bytes:
    """An xgboost model as JSON; of several classes, the trees add to the score of each in turn.

    Parameters
    ----------
    trees : the trees to write.
    n_features : width of the encoding.
    first_tree : the place of the first of them in the global model.
    before : digest of the trees of the global model before that place.
    outcome : what they predict.
    """
    count = len(trees)
    places, groups = (json.dumps(order, separators=(",", ":")) for order in orders_of(count, outcome))
    written = (f'{{"id":{i},"tree_param":{_sizes(tree, n_features)},{tree.text}' for i, tree in enumerate(trees))
    head = _HEAD % (BEFORE, before, FIRST_TREE, first_tree, count, places, groups)
    multiclass = outcome.kind == "multiclass"
    classes = outcome.classes if multiclass else 0
    settings = f'"softmax_multiclass_param":{{"num_class":"{classes}"}}' if multiclass else _LOSS_SETTINGS
    tail = _TAIL % (BASE_SCORE, classes, n_features, OBJECTIVES[outcome.kind], settings)
    return f"{head}{','.join(written)}{tail}".encode()


def orders_of(count: int, outcome: Outcome) -> tuple[list[int], list[int]]:
    """Where each iteration of boosting begins among ``count`` trees, and which score each tree adds to."""
    width = outcome.n_scores
    return list(range(0, count + 1, width)), [place % width for place in range(count)]


def _sizes(tree: Tree, n_features: int) -> str:
    return f'{{"num_deleted":"0","num_feature":"{n_features}","num_nodes":"{len(tree)}","size_leaf_vector":"1"}}'
