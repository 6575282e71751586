from __future__ import annotations

import json

import numpy as np
import pytest

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.models.base import LocalState
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.tree_validation import TreeModel, read_trees
from fedanon.models.trees import Tree

xgboost = pytest.importorskip("xgboost")

WIDTH = 4


class Rows:
    """Random rows in some instances."""

    def __init__(self, n_instances: int = 1, n_rows: int = 200, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.n_instances = n_instances
        self._instances = rng.random((n_instances, n_rows, WIDTH)).astype(np.float32)
        self.target = (self._instances[0] @ [3, -2, 1, 0] + rng.normal(size=n_rows) > 1).astype(np.int8)

    def instance(self, round_number: int) -> int:
        return round_number % self.n_instances

    def features(self, round_number: int) -> np.ndarray:
        return self._instances[self.instance(round_number)]


def grow(
    model: BoostedTrees, data: Rows, whole: TreeModel, state: LocalState, number: int, first: int = 0
) -> list[Tree]:
    """The new trees of one client."""
    rng = np.random.default_rng(number)
    update = model.train([whole.to_array(first)], data, round_number=number, rng=rng, state=state)
    return read_trees(update.parameters[0].tobytes(), n_features=WIDTH, limits=model.update_limits()).trees


def grown(model: BoostedTrees, data: Rows, rounds: int) -> tuple[TreeModel, LocalState]:
    """A model grown by one client that gets the new trees only."""
    whole, state, sent = TreeModel(WIDTH), LocalState(), 0
    for number in range(rounds):
        trees = grow(model, data, whole, state, number, sent)
        sent = len(whole)
        whole.append([trees], [1])
    return whole, state


def margins(data: bytes, features: np.ndarray) -> np.ndarray:
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    return booster.predict(xgboost.DMatrix(features), output_margin=True)


def test_one_client_is_plain_xgboost() -> None:
    model, data = BoostedTrees(colsample=1.0), Rows()
    whole, _ = grown(model, data, 8)
    settings = {"eta": 0.1, "max_depth": 5, "max_delta_step": 2, "base_score": 0.5, "objective": "binary:logistic"}
    plain = xgboost.train(settings, xgboost.DMatrix(data.features(0), data.target), 8)
    expected = plain.predict(xgboost.DMatrix(data.features(0)))
    np.testing.assert_allclose(model.predict_proba([whole.to_array()], data.features(0)), expected, rtol=1e-5)


@pytest.mark.parametrize("n_instances", [1, 3])
def test_kept_margins_are_those_of_the_whole_model(n_instances: int) -> None:
    model, data = BoostedTrees(), Rows(n_instances)
    whole, state = grown(model, data, 7)
    grow(model, data, whole, state, 7, first=6)
    for i in range(n_instances):
        kept = state.values["xgb"].matrices[i].get_base_margin()
        np.testing.assert_allclose(kept, margins(whole.to_bytes(), data.features(i)), atol=1e-6)


def test_whole_model_serves_a_client_that_missed_rounds() -> None:
    model, data = BoostedTrees(), Rows()
    whole, state = grown(model, data, 5)
    with_state = grow(model, data, whole, state, 5)
    afresh = grow(model, data, whole, LocalState(), 5)
    assert [tree.text for tree in with_state] == [tree.text for tree in afresh]
    with pytest.raises(UpdateRejectedError, match="whole model"):
        grow(model, data, whole, LocalState(), 5, first=3)


def test_margins_of_another_run_are_not_built_upon() -> None:
    model, data = BoostedTrees(), Rows()
    whole, _ = grown(model, data, 4)
    other, state = grown(model, Rows(seed=5), 4)
    state.values["xgb"].add(read_trees(other.to_bytes(), n_features=WIDTH, limits=model.model_limits()))
    whole.append([other.trees[:1]], [1])
    with pytest.raises(UpdateRejectedError, match="whole model"):
        grow(model, data, whole, state, 5, first=4)


def test_combined_margin_is_the_weighted_sum() -> None:
    model = BoostedTrees(n_trees=2)
    sets = [Rows(seed=1), Rows(seed=2)]
    updates = [
        model.train(model.initial(WIDTH), data, round_number=1, rng=np.random.default_rng(0), state=LocalState())
        for data in sets
    ]
    sent = [update.parameters[0].tobytes() for update in updates]
    limits = model.model_limits()
    grown = [read_trees(data, n_features=WIDTH, limits=limits).trees for data in sent]
    united = TreeModel.from_bytes(model.initial(WIDTH)[0].tobytes(), n_features=WIDTH, limits=limits)
    united.append(grown, [30, 10])
    features = sets[0].features(0)
    expected = 0.75 * margins(sent[0], features) + 0.25 * margins(sent[1], features)
    np.testing.assert_allclose(margins(united.to_bytes(), features), expected, atol=1e-6)
    united.append(grown, [1, 1])
    assert len(TreeModel.from_bytes(united.to_bytes(), n_features=WIDTH, limits=limits)) == 8


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_wrong_weights(weights: list[float]) -> None:
    with pytest.raises(ConfigError):
        TreeModel(WIDTH).append([[], []], weights)


def test_updates_do_not_tell_leaf_sizes() -> None:
    model, data = BoostedTrees(), Rows()
    update = model.train(model.initial(WIDTH), data, round_number=1, rng=np.random.default_rng(0), state=LocalState())
    tree = json.loads(update.parameters[0].tobytes())["learner"]["gradient_booster"]["model"]["trees"][0]
    assert not any(tree["sum_hessian"] + tree["base_weights"] + tree["loss_changes"])


def test_same_seed_same_bytes() -> None:
    first, second = (grown(BoostedTrees(subsample=0.5), Rows(2), 4)[0].to_bytes() for _ in range(2))
    assert first == second


def test_prediction_without_trees_is_a_half() -> None:
    model = BoostedTrees()
    assert (model.predict_proba(model.initial(WIDTH), Rows().features(0)) == 0.5).all()


def test_prediction_with_state_counts_only_what_is_new() -> None:
    model, data, state = BoostedTrees(), Rows(), LocalState()
    whole, _ = grown(model, data, 3)
    model.predict_proba([whole.to_array()], data.features(0), state=state)
    whole.append([whole.trees[:1]], [1])
    expected = model.predict_proba([whole.to_array()], data.features(0))
    got = model.predict_proba([whole.to_array(3)], data.features(0), state=state)
    np.testing.assert_allclose(got, expected, atol=1e-7)


def test_hostile_global_model_is_refused_by_the_client() -> None:
    model, data = BoostedTrees(), Rows()
    whole, _ = grown(model, data, 1)
    hostile = whole.to_bytes().replace(b'"split_indices":[', b'"split_indices":[99999')
    with pytest.raises(UpdateRejectedError):
        model.predict_proba([np.frombuffer(hostile, dtype=np.uint8)], data.features(0))
