"""Federations that predict one of several classes, or a number: scores, models, details, and what refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fedanon.cli.app import app
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.errors import ConfigError, FedanonError, UpdateRejectedError
from fedanon.federated.simulation import simulate
from fedanon.federated.sources import node_table
from fedanon.learning.malicious import MALICIOUS_ATTACKS
from fedanon.learning.node import Node
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.saved_model import SavedModel
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import STRATEGIES
from fedanon.learning.validation import refuse_partial
from fedanon.models import MODELS
from fedanon.models.outcome import REGRESSION

ROWS = 900
#: by the name of a data set, its target
TARGETS = {"stages": "stage", "days": "days"}


@lru_cache
def table_of(column: str) -> Table:
    """Patients whose stage and days in bed depend on their age and ward."""
    rng = np.random.default_rng(0)
    age, ward = rng.integers(20, 80, ROWS), rng.choice(["a", "b", "c"], ROWS)
    score = age / 20 + 2 * (ward == "a") + rng.normal(0, 0.5, ROWS)
    frame = pd.DataFrame(
        {
            "age": age,
            "ward": ward,
            "rare": np.where(np.arange(ROWS) < 30, "few", "many"),
            "stage": np.array(["I", "II", "III"])[np.digitize(score, [2.5, 4])],
            "days": np.clip(np.round(3 * score), 0, 25),
        }
    )
    quasi = {"role": "quasi_identifying"}
    attributes = {
        "age": {**quasi, "type": "numeric", "range": [20, 80], "integer": True},
        "ward": {**quasi, "type": "categorical", "values": ["a", "b", "c"]},
        "rare": {"role": "insensitive", "type": "categorical", "values": ["few", "many"]},
        "stage": {"role": "insensitive", "type": "categorical", "values": ["I", "II", "III"]},
        "days": {"role": "insensitive", "type": "numeric", "range": [0, 25]},
    }
    schema = Schema.from_dict({"target": column, "one_row_per_person": True, "attributes": attributes})
    return Table.from_frame(frame, schema)


@pytest.fixture(autouse=True)
def patients(small_adult) -> Iterator[None]:
    with DATASETS.restored():
        for name, column in TARGETS.items():
            read = partial(table_of, column)
            DATASETS.register(name)(Dataset("Patients", ROWS, "none", read, files=(), bundled=True))
        yield


def settings(dataset: str, **more) -> RunSettings:
    chosen = {"nodes": 3, "rounds": 10, "evaluate_every": 10, "method": "mondrian", "method_settings": {"k": 5}}
    return RunSettings(**({"dataset": dataset} | chosen | more))


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_classes_are_learned_and_named(tmp_path, model):
    done = simulate(settings("stages", model=model), subgroups=["ward", "rare"])
    result = done.to_dict()
    assert result["outcome"] == {"column": "stage", "kind": "multiclass", "classes": ["I", "II", "III"]}
    assert {result["facts"][str(node)]["classes"] for node in range(3)} == {3}
    assert result["auc_pooled"] > 0.9
    assert result["accuracy"] > 0.7
    assert 0 < result["log_loss"] < 1.0
    assert not result["rejected"]
    # what the saved model predicts is what was scored
    path = tmp_path / "rows.csv"
    table_of("stage").frame.drop(columns=["stage", "days"]).to_csv(path, index=False)
    found = SavedModel.read(done.write_model(tmp_path / "model")).predict(path)
    chances = found[["probability_I", "probability_II", "probability_III"]]
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (found["predicted"] == chances.idxmax(axis=1).str.removeprefix("probability_")).all()
    assert (found["predicted"] == table_of("stage").frame["stage"]).mean() > 0.7
    assert "one of 3 classes" in (tmp_path / "model" / "card.md").read_text()


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_a_number_is_learned_in_its_own_unit(tmp_path, model):
    done = simulate(settings("days", model=model, model_settings={} if model == "lr" else {"eta": 0.3}))
    result = done.to_dict()
    assert result["outcome"] == {"column": "days", "kind": "regression", "classes": []}
    assert result["r2"] > 0.7
    assert 0 < result["mae"] < result["rmse"] < 4
    assert "ece" not in result["calibration"]
    assert sum(entry["n"] for entry in result["calibration"]["bins"]) == result["n_test"]
    path = tmp_path / "rows.csv"
    table_of("days").frame.drop(columns=["stage", "days"]).to_csv(path, index=False)
    found = SavedModel.read(done.write_model(tmp_path / "model")).predict(path)
    assert list(found) == ["record", "predicted"]
    # the test rows of the run are among these
    assert np.abs(found["predicted"] - table_of("days").frame["days"]).mean() == pytest.approx(result["mae"], rel=0.3)


def test_scores_of_numbers_are_those_of_all_test_rows():
    done = simulate(settings("days"))
    nodes = [Node(node_table(done.settings, i), done.settings, i) for i in range(3)]
    truth = np.concatenate([node.test[1] for node in nodes]) * 25
    model = nodes[0].model
    guess = np.concatenate([model.predict_proba(done.outcome.parameters, node.test[0]) for node in nodes]) * 25
    result = done.to_dict()
    assert result["mae"] == pytest.approx(np.abs(guess - truth).mean())
    assert result["rmse"] == pytest.approx(np.sqrt(np.square(guess - truth).mean()))
    assert result["r2"] == pytest.approx(1 - np.square(guess - truth).mean() / truth.var())


# ---- details -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", ["adult", "stages"])
def test_calibration_and_subgroups_recounted(dataset):
    column = {"adult": "sex", "stages": "ward"}[dataset]
    done = simulate(settings(dataset), subgroups=[column])
    nodes = [Node(node_table(done.settings, i), done.settings, i) for i in range(3)]
    truth = np.concatenate([node.test[1] for node in nodes])
    found = np.concatenate([nodes[0].model.predict_proba(done.outcome.parameters, node.test[0]) for node in nodes])
    said, right = (found.max(axis=1), found.argmax(axis=1) == truth) if found.ndim == 2 else (found, truth == 1)
    rows = pd.DataFrame({"said": said, "right": right.astype(float), "bin": np.minimum((said * 10).astype(int), 9)})
    bins = rows.groupby("bin").agg(n=("said", "size"), predicted=("said", "mean"), observed=("right", "mean"))
    result = done.to_dict()
    assert [entry["n"] for entry in result["calibration"]["bins"]] == bins["n"].tolist()
    np.testing.assert_allclose([e["observed"] for e in result["calibration"]["bins"]], bins["observed"])
    gap = (bins["n"] * (bins["predicted"] - bins["observed"]).abs()).sum() / len(rows)
    assert result["calibration"]["ece"] == pytest.approx(gap)
    groups = np.concatenate([node.test_table.frame[column] for node in nodes])
    labels = found.argmax(axis=1) if found.ndim == 2 else (found >= 0.5).astype(int)
    expected = {g: (int((groups == g).sum()), (labels == truth)[groups == g].mean()) for g in np.unique(groups)}
    shown = {g["group"]: (g["n"], pytest.approx(g["accuracy"])) for g in result["subgroups"][column]["groups"]}
    assert shown == {group: entry for group, entry in expected.items() if entry[0] >= 50}


def test_small_groups_are_counted_and_not_shown():
    found = simulate(settings("stages", rounds=1, evaluate_every=1), subgroups=["rare"]).to_dict()["subgroups"]["rare"]
    assert [group["group"] for group in found["groups"]] == ["many"]
    assert found["smaller_groups"] == 1
    assert found["min_group"] == 50


@pytest.mark.parametrize("column", ["age", "stage", "nothing"])
def test_subgroups_need_a_categorical_column(column):
    with pytest.raises(FedanonError, match=f"categorical column, not '{column}'"):
        simulate(settings("stages"), subgroups=[column])


@pytest.mark.parametrize(("dataset", "words"), [("stages", "auc_weighted_pooled"), ("days", "rmse")])
def test_the_command_shows_what_fits_the_target(dataset, words):
    options = [
        "simulate",
        "--dataset",
        dataset,
        "--nodes",
        "3",
        "--rounds",
        "2",
        "--k",
        "5",
        "--subgroups",
        "ward,rare",
    ]
    told = CliRunner().invoke(app, options)
    assert told.exit_code == 0, told.output
    assert words in told.output
    assert "By ward" in told.output
    assert "1 values with fewer than 50 test rows are left out." in told.output
    as_json = CliRunner().invoke(app, [*options, "--json"])
    assert json.loads(as_json.stdout)["outcome"]["column"] == TARGETS[dataset]


# ---- what knows two classes only refuses ---------------------------------------------------------


@pytest.mark.parametrize("dataset", list(TARGETS))
@pytest.mark.parametrize("strategy", STRATEGIES.names())
@pytest.mark.parametrize("model", MODELS.names())
def test_every_model_and_strategy_learns_or_refuses_clearly(model, strategy, dataset):
    """The contract: a run over another kind of target either works, or ends with a ConfigError before it begins."""
    few = {"mlp": {"hidden": 2}}.get(model, {})
    chosen = settings(dataset, model=model, strategy=strategy, model_settings=few, nodes=7, rounds=1, evaluate_every=1)
    kind = {"stages": "multiclass", "days": "regression"}[dataset]
    if MODELS[model].aggregation not in STRATEGIES[strategy].aggregations:
        with pytest.raises(ConfigError):
            simulate(chosen)
    elif kind not in MODELS[model].outcomes:
        with pytest.raises(ConfigError, match=f"The model '{model}' cannot predict|needs a model with a proximal term"):
            simulate(chosen)
    else:
        result = simulate(chosen).to_dict()
        assert result["outcome"]["kind"] == kind
        assert np.isfinite(result["mae" if kind == "regression" else "log_loss"])


@pytest.mark.parametrize("dataset", list(TARGETS))
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"dp_settings": {"epsilon": 1.0}, "method": "identity", "method_settings": {}}, "Differentially private"),
        ({"dp_settings": {"epsilon": 1.0, "mode": "central"}}, "Differentially private"),
        ({"protocol": "as_published"}, "protocol 'as_published'"),
    ],
)
def test_runs_for_two_classes_only_refuse(dataset, more, words):
    with pytest.raises(ConfigError, match=f"{words}.*needs a target of two classes"):
        simulate(settings(dataset, **more))


@pytest.mark.parametrize("dataset", list(TARGETS))
def test_a_node_that_scores_privately_refuses(dataset):
    chosen = settings(dataset)
    with pytest.raises(ConfigError, match="Private scores need a target of two classes"):
        Node(node_table(chosen, 0), chosen, 0, NodeRules(scores="private"))


@pytest.mark.parametrize("attack", MALICIOUS_ATTACKS.names())
def test_malicious_nodes_work_or_refuse(attack):
    chosen = settings("stages", malicious=1, malicious_attack=attack, rounds=1, evaluate_every=1)
    if MALICIOUS_ATTACKS[attack].binary_only:
        with pytest.raises(ConfigError, match=f"attack '{attack}' needs a target of two classes"):
            simulate(chosen)
    else:
        assert simulate(chosen).to_dict()["malicious"]


def test_a_release_of_the_test_people_is_scored():
    chosen = settings("days")
    node = Node(node_table(chosen, 0), chosen, 0, NodeRules(scores="release", test_k=5))
    found = node.evaluate(node.model.initial(node.width))
    assert set(found) == {"mae_released", "mse_released", "target_mean_released", "target_variance_released"}


def test_half_of_what_pools_is_refused():
    whole = {"mae": 1.0, "mse": 2.0, "target_mean": 3.0, "target_variance": 1.0}
    refuse_partial(whole, REGRESSION)
    for name in whole:
        with pytest.raises(UpdateRejectedError, match="only some"):
            refuse_partial({n: v for n, v in whole.items() if n != name}, REGRESSION)


def test_another_number_of_classes_is_left_out():
    """A node whose schema says otherwise cannot take part: the others would train another model."""
    from fedanon.learning.participants import Participants

    participants = Participants()
    for number in range(3):
        chosen = settings("stages")
        facts = Node(node_table(chosen, number), chosen, number).facts
        participants.admit(number, number, replace(facts, classes=4) if number == 2 else facts)
    participants.check_agreement()
    assert participants.outcome.classes == 3
    assert [entry["reason"] for entry in participants.rejected] == ["it predicts another number of classes"]
