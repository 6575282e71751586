"""A model that is written, read back and applied gives what it gave in the run; what does not fit it is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fedanon.cli.app import app
from fedanon.data.schema import Numeric, Schema
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.federated import wire
from fedanon.federated.simulation import Simulation, simulate
from fedanon.federated.sources import node_table
from fedanon.io.audit import read_chain
from fedanon.learning.model_card import card_text, make_card
from fedanon.learning.saved_model import SavedModel, needed_schema, write_model
from fedanon.learning.strategies import make_model
from fedanon.models.encoding import Encoding
from tests.federated.conftest import settings


def run(model: str = "lr") -> Simulation:
    return simulate(settings(model, rounds=2, method="mondrian", method_settings={"k": 5}))


def write_table(path: Path, done: Simulation) -> Path:
    """A node's rows without their target."""
    table = node_table(done.settings, 0)
    table.frame.drop(columns=[table.schema.target]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("model", "file"), [("lr", "model.npz"), ("xgb", "model.json")])
def test_a_saved_model_predicts_as_in_the_run(tmp_path, model, file):
    done = run(model)
    folder = done.write_model(tmp_path / "model")
    found = SavedModel.read(folder).predict(write_table(tmp_path / "rows.csv", done))
    table = node_table(done.settings, 0)
    features = Encoding.from_schema(table.schema, features=done.settings.features).encode_table(table)
    expected = make_model(done.settings).predict_proba(done.outcome.parameters, features)
    np.testing.assert_array_equal(found["probability"], expected)
    assert found["record"].tolist() == list(range(1, len(table) + 1))
    assert set(found["predicted"]) <= {"<=50K", ">50K"}
    assert ((found["predicted"] == ">50K") == (expected >= 0.5)).all()
    assert sorted(path.name for path in folder.iterdir()) == sorted(["card.json", "card.md", "schema.json", file])
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


def test_trees_are_a_file_of_xgboost(tmp_path):
    from xgboost import Booster

    booster = Booster()
    booster.load_model(run("xgb").write_model(tmp_path / "model") / "model.json")
    assert booster.num_boosted_rounds() > 0


def test_the_card_counts_what_the_nodes_reported(tmp_path):
    done = run()
    folder = done.write_model(tmp_path / "model")
    card, text = json.loads((folder / "card.json").read_text()), (folder / "card.md").read_text()
    facts = done.outcome.facts
    assert [node["n_train"] for node in card["nodes"]] == [facts[number].n_train for number in sorted(facts)]
    assert card["privacy"]["smallest_k_reached"] == min(fact.measures["k_reached"] for fact in facts.values()) >= 5
    assert f"{sum(fact.n_train for fact in facts.values())} training records of 5 nodes" in text
    least = card["privacy"]["smallest_k_reached"]
    assert f"The smallest k a node measured of its release is {least:g}, counted in {done.unit}." in text
    assert card["counted"] == done.unit
    assert card["egress"] is None
    assert "What left the nodes was not collected here" in text
    assert card["metrics"] == done.outcome.rounds[-1]


def test_a_model_without_schema_needs_the_one_of_the_nodes(tmp_path):
    done = run()
    rows = write_table(tmp_path / "rows.csv", done)
    saved = SavedModel.read(done.write_model(tmp_path / "model"))
    alone = SavedModel(saved.card, saved.parameters, None)
    with pytest.raises(ConfigError, match="--schema"):
        alone.predict(rows)
    assert saved.schema is not None
    assert alone.predict(rows, saved.schema).equals(saved.predict(rows))
    age = saved.schema["age"]
    assert isinstance(age, Numeric)
    other = Schema.from_dict(json.loads(json.dumps(saved.schema.to_dict()).replace(f"{age.high}", "120.0", 1)))
    with pytest.raises(SchemaError, match="its hash is another"):
        alone.predict(rows, other)


def test_a_model_is_applied_by_what_is_needed_of_its_schema(tmp_path):
    done = run()
    rows, schema = write_table(tmp_path / "rows.csv", done), node_table(done.settings, 0).schema
    bare = needed_schema(schema, done.settings)
    card = make_card(done.settings, done.outcome, security="tls")
    folder = write_model(tmp_path / "model", card, done.outcome.parameters, bare)
    expected = SavedModel(card, done.outcome.parameters, schema).predict(rows)
    assert SavedModel.read(folder).predict(rows).equals(expected)
    stored = json.loads((folder / "schema.json").read_text())
    told = {name for name, entry in stored["attributes"].items() if {"range", "taxonomy"} & set(entry)}
    assert told == {*(a.name for a in schema.quasi_identifiers), schema.target}, "of the others, no value"
    assert set(stored["attributes"]) == set(schema.names)
    (folder / "schema.json").write_text((folder / "schema.json").read_text().replace("<=50K", "<=51K"))
    with pytest.raises(SchemaError, match="its hash is another"):
        SavedModel.read(folder).predict(rows)


def test_the_card_says_what_left_the_nodes(tmp_path):
    done = run()
    told = {name: number for number, name in enumerate(wire.EGRESS)}
    outcome = replace(done.outcome, egress={0: told, 1: {**told, "updates": 20}})
    card = make_card(done.settings, outcome, security="tls")
    assert card["egress"] == {"0": told, "1": {**told, "updates": 20}}
    text = card_text(card)
    assert "| node | releases | facts | updates | evaluations | counts | refusals | bytes |" in text
    assert "| 1 | 0 | 1 | 20 | 3 | 4 | 5 | 6 |" in text
    assert "| 2 | not told |" in text
    assert "As 2 of 5 nodes counted it" in text
    assert "not collected" not in text


def test_what_was_changed_or_exists_is_refused(tmp_path):
    done = run()
    folder = done.write_model(tmp_path / "model")
    with pytest.raises(ConfigError, match="nothing was written"):
        done.write_model(folder)
    arrays = [np.zeros_like(array) for array in done.outcome.parameters]
    np.savez(folder / "model.npz", *arrays)
    with pytest.raises(DataError, match="it was changed"):
        SavedModel.read(folder)
    (folder / "card.json").unlink()
    with pytest.raises(DataError, match="not the folder of a model"):
        SavedModel.read(folder)
    first = SavedModel.read(done.write_model(tmp_path / "again"))
    write_model(tmp_path / "again", first.card, done.outcome.parameters, first.schema, replace=True)
    assert SavedModel.read(tmp_path / "again").card == first.card
    write_model(tmp_path / "again", first.card, done.outcome.parameters, replace=True)
    assert SavedModel.read(tmp_path / "again").schema is None, "that of the earlier model is gone"


def test_the_command_writes_once_and_notes_it(tmp_path):
    done = run()
    folder, rows = done.write_model(tmp_path / "model"), write_table(tmp_path / "rows.csv", done)
    command = ["predict", str(folder), str(rows), "-o", str(tmp_path / "out.csv"), "--audit", str(tmp_path / "log")]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    written = pd.read_csv(tmp_path / "out.csv")
    positive = int((written["probability"] >= 0.5).sum())
    words = " ".join(first.output.split())
    assert f"{len(written)} records, {positive} of them with a probability of at least 0.5" in words
    assert isinstance(CliRunner().invoke(app, command).exception, ConfigError)
    chain, _ = read_chain(tmp_path / "log")
    line = json.loads((tmp_path / "log").read_text())
    assert (chain.lines, line["event"], line["facts"]["records"]) == (1, "predict", len(written))
