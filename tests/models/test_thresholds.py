from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.datasets import load
from fedanon.models.base import LocalState
from fedanon.models.boosted_trees import BoostedTrees, between_values
from fedanon.models.encoding import Encoding
from fedanon.models.tree_validation import read_trees
from fedanon.models.trees import Tree, write_trees

xgboost = pytest.importorskip("xgboost")


def grown_on(features: np.ndarray, seed: int = 0) -> tuple[Tree, xgboost.DMatrix]:
    """A deep tree of random labels."""
    label = np.random.default_rng(seed + 100).integers(0, 2, len(features))
    matrix = xgboost.DMatrix(features, label=label, nthread=1)
    booster = xgboost.Booster(
        {"objective": "binary:logistic", "base_score": 0.5, "max_depth": 8, "nthread": 1}, [matrix]
    )
    booster.update(matrix, 0)
    limits = BoostedTrees(max_depth=8, max_step=100).update_limits()
    return read_trees(bytes(booster.save_raw("json")), n_features=features.shape[1], limits=limits).trees[0], matrix


def leaves(tree: Tree, features: np.ndarray) -> np.ndarray:
    booster = xgboost.Booster()
    booster.load_model(bytearray(write_trees([tree], n_features=features.shape[1])))
    return booster.predict(xgboost.DMatrix(features), pred_leaf=True)


def thresholds_among(tree: Tree, features: np.ndarray) -> float:
    inner = np.flatnonzero(~tree.leaves)
    return float(np.mean([tree.value[node] in features[:, tree.feature[node]] for node in inner]))


@pytest.mark.parametrize("seed", range(5))
def test_moved_thresholds_are_no_values_and_no_row_changes_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # whole numbers far from zero, few distinct values, tenths, and yes or no
    columns = [rng.integers(40, 60, 500) / 100, rng.choice([0.2, 0.9], 500), rng.integers(0, 11, 500) / 10]
    features = np.column_stack([*columns, rng.integers(0, 2, 500)]).astype(np.float32)
    tree, matrix = grown_on(features, seed)
    moved = between_values(tree, matrix, features.min(axis=0))
    assert len(tree) > 20
    assert thresholds_among(tree, features) == 1.0
    assert thresholds_among(moved, features) == 0.0
    np.testing.assert_array_equal(leaves(moved, features), leaves(tree, features))


def test_with_more_values_than_bins_few_rows_change_sides() -> None:
    features = np.random.default_rng(0).random((5000, 3)).astype(np.float32)
    tree, matrix = grown_on(features)
    moved = between_values(tree, matrix, features.min(axis=0))
    assert thresholds_among(moved, features) == 0.0
    # on the way down eight levels, at most one of 256 bins a level
    assert np.mean(leaves(moved, features) != leaves(tree, features)) < 8 / 256


def sent_by(method: str, thresholds: str, **settings: int) -> tuple[Tree, np.ndarray]:
    """The first tree of a node, and the raw features of its people."""
    table = load("adult").select_rows(range(400))
    encoding = Encoding.from_schema(table.schema)
    model = BoostedTrees(thresholds=thresholds)
    data = model.training_data(ANONYMIZERS[method](**settings).anonymize(table, rng=0), encoding, 0)
    rng = np.random.default_rng(0)
    update = model.train(model.initial(encoding.width), data, round_number=1, rng=rng, state=LocalState())
    [sent] = update.parameters
    [tree] = read_trees(sent.tobytes(), n_features=encoding.width, limits=model.update_limits()).trees
    return tree, encoding.encode_table(table)


@pytest.mark.parametrize(
    ("method", "settings", "thresholds", "share"),
    [
        ("mondrian", {"k": 5}, "between", 0.0),
        ("mondrian", {"k": 5}, "values", 1.0),
        # nothing is promised of raw rows, and moving their thresholds would only look like it
        ("identity", {}, "between", 1.0),
    ],
)
def test_a_node_moves_the_thresholds_of_anonymized_rows(
    method: str, settings: dict[str, int], thresholds: str, share: float
) -> None:
    tree, raw = sent_by(method, thresholds, **settings)
    assert thresholds_among(tree, raw) == share
