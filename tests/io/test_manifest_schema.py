"""A manifest holds role and type of the columns that are dropped or passed through, and none of their values."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from fedanon.anonymizers import Mondrian
from fedanon.data.readers import read_table
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table
from fedanon.errors import SchemaError
from fedanon.io.manifest import Manifest
from fedanon.io.release_file import manifest_path, write_release
from fedanon.verification import Verification

SCHEMA = """
name = "ward"
[attributes.name]
role = "identifying"
type = "categorical"
values = ["Ana Souza", "Bento Lima"]
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
[attributes.diagnosis]
role = "sensitive"
type = "categorical"
[attributes.diagnosis.taxonomy]
Lung = ["asthma", "influenza"]
Heart = ["angina", "infarction"]
[attributes.income]
role = "insensitive"
type = "numeric"
range = [431, 98765]
"""
SAID = ("Souza", "asthma", "Lung", "98765", "431")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    diagnoses = ["asthma", "influenza", "angina", "infarction"]
    rows = {
        "name": [("Ana Souza", "Bento Lima")[i % 2] for i in range(40)],
        "age": [20 + i for i in range(40)],
        "diagnosis": [diagnoses[i % 4] for i in range(40)],
        "income": [431 + 1000 * i for i in range(40)],
    }
    table, schema = tmp_path / "ward.csv", tmp_path / "ward.toml"
    pd.DataFrame(rows).to_csv(table, index=False)
    schema.write_text("one_row_per_person = true\n" + SCHEMA)
    return table, schema


def released(table: Path, schema: Path, require: str) -> Manifest:
    read = read_table(table, Schema.read(schema))
    out = write_release(Mondrian(k=4, require=require).anonymize(read, rng=1), read, table.with_name("out.csv"))
    manifest = Manifest.beside(out)
    assert manifest is not None
    return manifest


def outcomes(verification: Verification) -> dict[str, str]:
    return {check.name: check.outcome for check in verification.checks(rebuild=verification.original is not None)}


def test_no_value_of_a_dropped_or_passed_through_column_is_listed(files: tuple[Path, Path]) -> None:
    manifest = released(*files, require="")
    # a short number stands in a hash by chance
    text = re.sub(r"\b[0-9a-f]{64}\b", "", manifest_path(manifest.release).read_text())
    assert [value for value in SAID if value in text] == []
    types = {column["name"]: (column["role"], column["type"]) for column in manifest.document["columns"]}
    assert types["name"] == ("identifying", "categorical")
    assert types["income"] == ("insensitive", "numeric")
    assert manifest.schema is not None
    assert isinstance(manifest.schema["income"], Numeric)


def test_everything_is_verified_without_the_schema_file(files: tuple[Path, Path]) -> None:
    manifest = released(*files, require="l=2:diagnosis,t=0.5:income")
    found = outcomes(Verification(manifest, original=files[0]))
    assert {"schema of the manifest", "hash of the data", "rebuild", "0.5-closeness of 'income'"} <= set(found)
    assert set(found.values()) == {"pass"}


def test_a_promise_along_a_taxonomy_needs_the_schema_file(files: tuple[Path, Path]) -> None:
    table, schema = files
    manifest = released(table, schema, require="t=0.5:diagnosis:hierarchical")
    name = "0.5-closeness of 'diagnosis'"
    alone = outcomes(Verification(manifest, original=table))
    assert (alone[name], alone["rebuild"]) == ("open", "open")
    given = outcomes(Verification(manifest, Schema.read(schema), table))
    assert (given[name], given["rebuild"], given["schema given"]) == ("pass", "pass", "pass")


def test_another_schema_is_noticed(files: tuple[Path, Path]) -> None:
    table, schema = files
    manifest = released(table, schema, require="")
    schema.write_text(schema.read_text().replace("98765", "98766"))
    assert outcomes(Verification(manifest, Schema.read(schema)))["schema given"] == "fail"
    manifest.path.write_text(manifest.path.read_text().replace("range = [0, 110]", "range = [0, 111]"))
    assert outcomes(Verification(Manifest.read(manifest.path)))["schema of the manifest"] == "fail"


def test_a_range_may_be_left_out_but_not_by_a_quasi_identifier(tmp_path: Path) -> None:
    text = '[attributes.cost]\nrole = "sensitive"\ntype = "numeric"\n'
    path = tmp_path / "schema.toml"
    path.write_text(text)
    schema = Schema.read(path)
    path.write_text(schema_toml(schema))
    assert Schema.read(path) == schema
    assert len(Table.from_frame(pd.DataFrame({"cost": ["1e30", "-5"]}), schema)) == 2
    with pytest.raises(SchemaError, match="needs a range"):
        schema.with_quasi_identifiers(["cost"])
    path.write_text(text.replace("sensitive", "quasi_identifying"))
    with pytest.raises(SchemaError, match="needs a range"):
        Schema.read(path)
    assert schema["cost"].role is Role.SENSITIVE
