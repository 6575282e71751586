"""Every hostile model of the security notes is refused before xgboost sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fedanon.errors import UpdateRejectedError
from fedanon.models.tree_validation import TreeLimits, read_trees
from fedanon.models.trees import Tree, write_trees

LIMITS = TreeLimits(max_trees=2, max_nodes=31, max_depth=4, max_bytes=20_000, max_weight=1.0)
N_FEATURES = 3
Change = Callable[[dict[str, Any]], object]


def small_tree(threshold: float = 0.5) -> Tree:
    """Two splits, three leaves."""
    return Tree(
        left=np.array([1, 3, -1, -1, -1], dtype=np.int32),
        right=np.array([2, 4, -1, -1, -1], dtype=np.int32),
        feature=np.array([0, 2, 0, 0, 0], dtype=np.int32),
        value=np.array([threshold, 0.25, 0.5, -0.5, 0.1], dtype=np.float32),
        default_left=np.zeros(5, dtype=np.int32),
    )


GOOD = write_trees([small_tree(), small_tree(0.3)], n_features=N_FEATURES, first_tree=7, before="abc")


def check(data: bytes) -> None:
    read_trees(data, n_features=N_FEATURES, limits=LIMITS)


def chain(nodes: int) -> Tree:
    """A tree that is a long ladder."""
    inner = nodes // 2
    left = np.full(nodes, -1, dtype=np.int32)
    right = left.copy()
    left[: 2 * inner : 2] = 1 + 2 * np.arange(inner)
    right[: 2 * inner : 2] = 2 + 2 * np.arange(inner)
    zeros = np.zeros(nodes, dtype=np.int32)
    return Tree(left, right, zeros, zeros.astype(np.float32), zeros)


def test_good_trees_survive_the_round_trip() -> None:
    received = read_trees(GOOD, n_features=N_FEATURES, limits=LIMITS)
    assert (received.first_tree, received.before, len(received.trees)) == (7, "abc", 2)
    assert write_trees(received.trees, n_features=N_FEATURES, first_tree=7, before="abc") == GOOD


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\xff\xfegarbage",
        b"null",
        b"[]",
        b'"learner"',
        b"{}",
        b'{"learner": []}',
        GOOD[: len(GOOD) // 2],
        GOOD[:-1],
        GOOD + b"}",
        GOOD + b" " * LIMITS.max_bytes,
        b"[" * 15_000,
        b'{"learner":' * 1_500,
        GOOD.replace(b'"left_children":[1', b'"left_children":[' + b"9" * 5000),
        write_trees([small_tree()] * 3, n_features=N_FEATURES),
        write_trees([], n_features=N_FEATURES),
        write_trees([chain(33)], n_features=N_FEATURES),
        write_trees([chain(11)], n_features=N_FEATURES),
        write_trees([small_tree()], n_features=9),
    ],
)
def test_hostile_bytes(data: bytes) -> None:
    with pytest.raises(UpdateRejectedError):
        check(data)


def learner(key: str, entry: str, value: Any) -> Change:
    return lambda document: document["learner"][key].update({entry: value})


def booster(key: str, value: Any) -> Change:
    return lambda document: document["learner"]["gradient_booster"]["model"].update({key: value})


def counts(key: str, value: Any) -> Change:
    return lambda document: document["learner"]["gradient_booster"]["model"]["gbtree_model_param"].update({key: value})


def tree(key: str, value: Any) -> Change:
    return lambda document: document["learner"]["gradient_booster"]["model"]["trees"][1].update({key: value})


def sizes(key: str, value: Any) -> Change:
    return lambda document: document["learner"]["gradient_booster"]["model"]["trees"][1]["tree_param"].update(
        {key: value}
    )


HOSTILE = {
    "NaN leaf": tree("split_conditions", [0.5, 0.25, float("nan"), 0.1, 0.1]),
    "infinite leaf": tree("split_conditions", [0.5, 0.25, float("inf"), 0.1, 0.1]),
    "leaf of 1e30": tree("split_conditions", [0.5, 0.25, 1e30, 0.1, 0.1]),
    "leaf just too large": tree("split_conditions", [0.5, 0.25, -1.01, 0.1, 0.1]),
    "infinite threshold": tree("split_conditions", [-float("inf"), 0.25, 0.1, 0.1, 0.1]),
    "threshold beyond float32": tree("split_conditions", [1e300, 0.25, 0.1, 0.1, 0.1]),
    "threshold an enormous integer": tree("split_conditions", [10**400, 0.25, 0.1, 0.1, 0.1]),
    "text threshold": tree("split_conditions", ["0.5", 0.25, 0.1, 0.1, 0.1]),
    "list as threshold": tree("split_conditions", [[0.5], 0.25, 0.1, 0.1, 0.1]),
    "lists as thresholds": tree("split_conditions", [[0.5]] * 5),
    "no threshold": tree("split_conditions", [None, 0.25, 0.1, 0.1, 0.1]),
    "split beyond the features": tree("split_indices", [999999, 2, 0, 0, 0]),
    "split on feature n": tree("split_indices", [3, 2, 0, 0, 0]),
    "negative split": tree("split_indices", [-1, 2, 0, 0, 0]),
    "fractional split": tree("split_indices", [0.5, 2, 0, 0, 0]),
    "split of 2**31": tree("split_indices", [2**31, 2, 0, 0, 0]),
    "split of 2**63": tree("split_indices", [2**63, 2, 0, 0, 0]),
    "child is the root": tree("left_children", [0, 3, -1, -1, -1]),
    "child points back": tree("left_children", [1, 0, -1, -1, -1]),
    "children of each other": lambda d: (
        tree("left_children", [1, 2, 1, -1, -1])(d),
        tree("right_children", [2, 4, 3, -1, -1])(d),
    ),
    "cycle aside of the root": lambda d: (
        tree("left_children", [-1, 2, 1, -1, -1])(d),
        tree("right_children", [-1, 3, 4, -1, -1])(d),
    ),
    "node reached twice": tree("left_children", [1, 2, -1, -1, -1]),
    "child beyond the array": tree("left_children", [1, 77, -1, -1, -1]),
    "child of -2": tree("left_children", [1, 3, -2, -1, -1]),
    "one child only": tree("right_children", [2, -1, -1, -1, -1]),
    "left children too short": tree("left_children", [1, 3, -1, -1]),
    "thresholds too long": tree("split_conditions", [0.1] * 6),
    "no left children": tree("left_children", None),
    "weights too short": tree("base_weights", []),
    "infinite Hessian": tree("sum_hessian", [float("inf")] * 5),
    "default direction of 7": tree("default_left", [7, 0, 0, 0, 0]),
    "categorical split": tree("split_type", [1, 0, 0, 0, 0]),
    "categories": tree("categories", [1, 2]),
    "wrong id": tree("id", 0),
    "id beyond the trees": tree("id", 10**6),
    "wrong number of nodes": sizes("num_nodes", "4"),
    "a million nodes": sizes("num_nodes", "1000000"),
    "nodes without end": sizes("num_nodes", "9" * 5000),
    "negative nodes": sizes("num_nodes", "-1"),
    "no nodes": sizes("num_nodes", "0"),
    "nodes as a number": sizes("num_nodes", 5),
    "tree of other features": sizes("num_feature", "9"),
    "deleted nodes": sizes("num_deleted", "2"),
    "vector leaves": sizes("size_leaf_vector", "3"),
    "tree is a list": booster("trees", [[], []]),
    "trees are a table": booster("trees", {}),
    "nine features": learner("learner_model_param", "num_feature", "9"),
    "multi-class": learner("learner_model_param", "num_class", "3"),
    "two targets": learner("learner_model_param", "num_target", "2"),
    "wrong base score": learner("learner_model_param", "base_score", "0.9"),
    "NaN base score": learner("learner_model_param", "base_score", "nan"),
    "base score in words": learner("learner_model_param", "base_score", "half"),
    "wrong objective": learner("objective", "name", "reg:squarederror"),
    "dart": learner("gradient_booster", "name", "dart"),
    "a million parallel trees": counts("num_parallel_tree", "1000000"),
    "wrong number of trees": counts("num_trees", "3"),
    "tree of class 5": booster("tree_info", [0, 5]),
    "tree info too long": booster("tree_info", [0] * 5),
    "iterations beyond the trees": booster("iteration_indptr", [0, 1, 10**6]),
    "negative place": learner("attributes", "fedanon_first_tree", "-5"),
    "endless digest": learner("attributes", "fedanon_before", "a" * 65),
    "digest a number": learner("attributes", "fedanon_before", 5),
    "no attributes": lambda d: d["learner"].pop("attributes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models(name: str) -> None:
    document = json.loads(GOOD)
    HOSTILE[name](document)
    with pytest.raises(UpdateRejectedError):
        check(json.dumps(document).encode())
