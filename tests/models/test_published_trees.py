"""Flower's bagging as published: all trees at full weight, the base score of the first reply."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fedanon.models.base import LocalState
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.thesis_models import ThesisTrees
from fedanon.models.tree_validation import TreeModel, read_trees
from fedanon.models.trees import Tree

WIDTH = 4


class Rows:
    n_instances = 1

    def __init__(self, seed: int, share: float = 0.3, rows: int = 400) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.random((rows, WIDTH)).astype(np.float32)
        self.target = (self.x[:, 0] + rng.normal(0, 0.2, rows) > np.quantile(self.x[:, 0], 1 - share)).astype(np.int8)

    def instance(self, round_number: int) -> int:
        return 0

    def features(self, round_number: int) -> NDArray[np.float32]:
        return self.x


def trees_of(model: BoostedTrees, parameters: list[NDArray[np.uint8]]) -> list[Tree]:
    return read_trees(parameters[0].tobytes(), n_features=WIDTH, limits=model.update_limits()).trees


def grow(model: BoostedTrees, clients: list[Rows], rounds: int) -> TreeModel:
    trees, states = TreeModel(WIDTH), [LocalState() for _ in clients]
    for number in range(1, rounds + 1):
        updates = [
            model.train(
                [trees.to_array()], data, round_number=number, rng=np.random.default_rng(number), state=state
            ).parameters
            for data, state in zip(clients, states, strict=True)
        ]
        model.merge_trees(
            trees, [trees_of(model, update) for update in updates], [float(len(c.target)) for c in clients]
        )
    return trees


def test_one_client_is_plain_xgboost_with_its_share_as_base_score() -> None:
    import xgboost

    data, model = Rows(0), ThesisTrees()
    trees = grow(model, [data], rounds=5)
    settings = {"objective": "binary:logistic", "eta": 0.1, "max_depth": 8, "tree_method": "hist", "nthread": 1}
    settings |= {"base_score": float(data.target.mean())}
    plain = xgboost.train(settings, xgboost.DMatrix(data.x, label=data.target), num_boost_round=5)
    ours = model.predict_proba([trees.to_array()], data.x)
    np.testing.assert_allclose(ours, plain.predict(xgboost.DMatrix(data.x)), atol=1e-6)


def test_trees_keep_their_weight_and_the_first_base_score_counts() -> None:
    clients, model = [Rows(0, share=0.3), Rows(1, share=0.6)], ThesisTrees()
    trees = grow(model, clients, rounds=2)
    assert [len(tree) == 1 for tree in trees.trees] == [True, False, False, False, False]
    share = clients[0].target.mean()
    assert trees.trees[0].value[0] == pytest.approx(np.log(share / (1 - share)), rel=1e-6)
    scaled = grow(BoostedTrees(instances="leaves", max_depth=8, colsample=1.0), clients, rounds=1)
    largest = [max(np.abs(tree.value[tree.leaves]).max() for tree in m.trees[-2:]) for m in (trees, scaled)]
    assert largest[0] > 1.2 * largest[1]


def test_a_client_of_one_class_has_a_finite_base_score() -> None:
    data = Rows(0)
    data.target[:] = 0
    base = grow(ThesisTrees(), [data], rounds=1).trees[0]
    assert np.isfinite(base.value[0])
    assert base.value[0] < -5
