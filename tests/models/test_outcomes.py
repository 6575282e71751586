"""Targets of more than two classes, and numbers: what they are, what models make of them, and how they are scored."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.errors import ConfigError, SchemaError, UpdateRejectedError
from fedanon.learning.aggregators import make_aggregator
from fedanon.learning.strategies.means import WeightedMean
from fedanon.learning.thesis_node import FixedRows
from fedanon.models import BoostedTrees, LogisticRegression
from fedanon.models.base import LocalState, TrainingData
from fedanon.models.outcome import BINARY, REGRESSION, Outcome
from fedanon.models.outcome_scores import all_scores, multiclass_scores, node_scores, summed_up
from fedanon.models.target import binary_target, class_values, in_units, outcome_of, target, unit_of
from fedanon.models.tree_validation import read_trees

metrics = pytest.importorskip("sklearn.metrics")

THREE = Outcome(3)


def schema_of(attribute: Numeric | Categorical) -> Schema:
    return Schema((attribute,), target=attribute.name, missing_values=("?",))


def numeric(low: float, high: float, *, integer: bool = False) -> Schema:
    return schema_of(Numeric("y", Role.INSENSITIVE, low, high, integer))


def classes(*values: str) -> Schema:
    return schema_of(Categorical("y", Role.INSENSITIVE, Hierarchy.flat(list(values))))


# ---- what is predicted follows from the schema ---------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "outcome"),
    [
        (classes("no", "yes"), BINARY),
        (classes("b", "c", "a"), THREE),
        (numeric(0, 14), REGRESSION),
        (numeric(0, 1, integer=True), BINARY),
        (numeric(-np.inf, np.inf), BINARY),  # no range to scale by: 0 and 1, or refused
    ],
)
def test_the_schema_says_what_is_predicted(schema, outcome):
    assert outcome_of(schema) == outcome


def test_classes_are_numbered_in_sorted_order():
    schema = classes("b", "c", "a")
    np.testing.assert_array_equal(target(pd.DataFrame({"y": ["c", "a", "b", "a"]}), schema), [2, 0, 1, 0])
    assert class_values(schema) == ("a", "b", "c")


def test_a_number_is_its_place_in_the_range():
    schema = numeric(10, 30)
    found = target(pd.DataFrame({"y": ["10", "25", "30"]}), schema)
    np.testing.assert_allclose(found, [0, 0.75, 1])
    np.testing.assert_allclose(in_units(np.asarray(found), schema), [10, 25, 30])
    assert unit_of(schema) == 20
    assert class_values(schema) == ()


@pytest.mark.parametrize(("schema", "cells"), [(classes("a", "b", "c"), ["a", "?", "d"]), (numeric(0, 9), ["1", "?"])])
def test_cells_that_cannot_be_learned_are_counted(schema, cells):
    bad = len(set(cells) - {"a", "1"})
    with pytest.raises(SchemaError, match=f"has {bad} cells"):
        target(pd.DataFrame({"y": cells}), schema)


def test_what_knows_two_classes_only_refuses_others():
    with pytest.raises(ConfigError, match=r"two classes.*'y' is one of 3 classes"):
        binary_target(pd.DataFrame({"y": ["a"]}), classes("a", "b", "c"))
    with pytest.raises(ConfigError, match="'y' is a number"):
        binary_target(pd.DataFrame({"y": [3]}), numeric(0, 9))


# ---- scores --------------------------------------------------------------------------------------


@st.composite
def three_classes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(3, 60))
    truth = np.append([0, 1, 2], rng.integers(0, 3, n - 3))
    # few distinct values, so that ties are common
    raw = rng.integers(1, draw(st.sampled_from([3, 1000])), (n, 3)).astype(float)
    return truth, raw / raw.sum(axis=1, keepdims=True)


@given(three_classes())
def test_scores_of_classes_like_sklearn(case):
    truth, p = case
    ours, labels = multiclass_scores(truth, p), p.argmax(axis=1)
    assert ours["accuracy"] == pytest.approx(metrics.accuracy_score(truth, labels))
    assert ours["f1_macro"] == pytest.approx(metrics.f1_score(truth, labels, average="macro", zero_division=0))
    assert ours["log_loss"] == pytest.approx(metrics.log_loss(truth, p))
    assert ours["auc"] == pytest.approx(metrics.roc_auc_score(truth, p, multi_class="ovr"))
    weighted = metrics.roc_auc_score(truth, p, multi_class="ovr", average="weighted")
    assert ours["auc_weighted"] == pytest.approx(weighted)


def test_a_class_that_does_not_occur_has_no_area():
    p = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1]])
    two = multiclass_scores(np.array([0, 1, 0]), p)
    assert two["auc"] == 1.0
    assert np.isnan(multiclass_scores(np.array([1, 1, 1]), p)["auc"])


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_errors_of_numbers_pool_over_nodes_like_sklearn(seed, n_nodes):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, n_nodes) + 1
    truths = [rng.random(size) + rng.random() for size in sizes]  # the means of the nodes differ
    guesses = [truth + rng.normal(0, 0.3, len(truth)) for truth in truths]
    sent = [(node_scores(REGRESSION, t, g, unit=20.0), len(t)) for t, g in zip(truths, guesses, strict=True)]
    truth, guess = np.concatenate(truths) * 20, np.concatenate(guesses) * 20
    pooled = summed_up(sent)
    assert pooled["mae"] == pytest.approx(metrics.mean_absolute_error(truth, guess))
    assert pooled["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, guess))
    assert pooled["r2"] == pytest.approx(metrics.r2_score(truth, guess), rel=1e-6, abs=1e-6)
    assert set(pooled) == {"mae", "rmse", "r2"}


def test_a_constant_number_has_no_r2():
    assert set(all_scores(REGRESSION, np.full(3, 0.5), np.array([0.4, 0.5, 0.6]))) == {"mae", "rmse"}


# ---- models --------------------------------------------------------------------------------------


def rows_of(outcome: Outcome, n: int = 400, seed: int = 0) -> FixedRows:
    """Rows of three features, of which the first two decide."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3)).astype(np.float32)
    score = x[:, 0] + 0.5 * x[:, 1] + rng.normal(0, 0.05, n)
    if outcome == REGRESSION:
        return FixedRows(x, np.clip(score / 1.5, 0, 1))
    return FixedRows(x, np.digitize(score, np.linspace(0, 1.5, outcome.classes + 1)[1:-1]).astype(np.int8))


def trained(model, data: TrainingData, width: int, rounds: int):
    aggregator, state = make_aggregator(model, width, WeightedMean()), LocalState()
    for number in range(1, rounds + 1):
        sent = aggregator.pending_updates((0, "train"))
        update = model.train(sent, data, round_number=number, rng=np.random.default_rng(number), state=state)
        aggregator.combine(number, [aggregator.read(update.parameters)], [update.n_examples])
    return aggregator.parameters


def test_softmax_reaches_the_optimum_sklearn_finds():
    from sklearn.linear_model import LogisticRegression as Reference

    data = rows_of(THREE)
    model = LogisticRegression(l2=1e-2, steps=10).predicting(THREE)
    parameters = trained(model, data, 3, 300)
    reference = Reference(C=1 / (1e-2 * len(data.target)), tol=1e-8, max_iter=10_000).fit(data.rows, data.target)
    np.testing.assert_allclose(
        model.predict_proba(parameters, data.rows), reference.predict_proba(data.rows), atol=2e-3
    )


def test_a_number_is_learned_by_least_squares():
    from sklearn.linear_model import Ridge

    data = rows_of(REGRESSION)
    model = LogisticRegression(l2=1e-3).predicting(REGRESSION)
    parameters = trained(model, data, 3, 2)
    reference = Ridge(alpha=1e-3 * len(data.target)).fit(data.rows, data.target)
    np.testing.assert_allclose(model.predict_proba(parameters, data.rows), reference.predict(data.rows), atol=1e-4)


@pytest.mark.parametrize("outcome", [THREE, REGRESSION])
def test_any_xgboost_reads_the_trees_and_predicts_the_same(outcome):
    from xgboost import Booster, DMatrix

    data, model = rows_of(outcome), BoostedTrees().predicting(outcome)
    parameters = trained(model, data, 3, 5)
    booster = Booster()
    booster.load_model(bytearray(parameters[0].tobytes()))
    np.testing.assert_allclose(
        model.predict_proba(parameters, data.rows), booster.predict(DMatrix(data.rows)), atol=1e-6
    )


@pytest.mark.parametrize("outcome", [THREE, REGRESSION])
def test_more_rounds_learn_more(outcome):
    data, model, width = rows_of(outcome), BoostedTrees().predicting(outcome), 3
    short, long = (trained(model, data, width, rounds) for rounds in (2, 40))
    test = rows_of(outcome, seed=1)
    name = "r2" if outcome == REGRESSION else "accuracy"
    scores = [all_scores(outcome, test.target, model.predict_proba(p, test.rows))[name] for p in (short, long)]
    assert scores[1] > max(scores[0], 0.8)


# ---- updates of another kind are refused ---------------------------------------------------------


def an_update(outcome: Outcome) -> bytes:
    model = BoostedTrees(n_trees=2).predicting(outcome)
    update = model.train(
        model.initial(3), rows_of(outcome), round_number=1, rng=np.random.default_rng(0), state=LocalState()
    )
    return update.parameters[0].tobytes()


@pytest.mark.parametrize("sent", [BINARY, Outcome(4), REGRESSION])
def test_trees_for_another_target_are_refused(sent):
    limits = BoostedTrees(n_trees=4).predicting(Outcome(4)).update_limits()
    data = an_update(sent)
    read_trees(data, n_features=3, limits=limits, outcome=sent)
    with pytest.raises(UpdateRejectedError, match=r"objective is another|number of classes is another"):
        read_trees(data, n_features=3, limits=limits, outcome=THREE)


@pytest.mark.parametrize("change", ["drop one", "swap classes", "begin inside", "too many"])
def test_trees_of_classes_come_in_full_turns(change):
    document, limits = json.loads(an_update(THREE)), BoostedTrees(n_trees=2).predicting(THREE).update_limits()
    model = document["learner"]["gradient_booster"]["model"]
    if change == "drop one":
        model["trees"].pop()
        model["tree_info"].pop()
        model["gbtree_model_param"]["num_trees"] = "5"
    elif change == "swap classes":
        model["tree_info"][:2] = [1, 0]
    elif change == "begin inside":
        document["learner"]["attributes"]["fedanon_first_tree"] = "1"
    else:
        limits = replace(limits, max_trees=5)
    with pytest.raises(UpdateRejectedError, match=r"order|first tree|number of trees"):
        read_trees(json.dumps(document).encode(), n_features=3, limits=limits, outcome=THREE)


def test_arrays_of_another_number_of_classes_are_refused():
    model = LogisticRegression()
    aggregator = make_aggregator(model.predicting(THREE), 5, WeightedMean())
    aggregator.read(model.predicting(THREE).initial(5))
    for other in (BINARY, Outcome(4), REGRESSION):
        with pytest.raises(UpdateRejectedError, match="an array is"):
            aggregator.read(model.predicting(other).initial(5))
