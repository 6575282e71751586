"""Manifests that commands write keep the published JSON Schema, and it describes every key they have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fedanon.datasets.example_files import write_example_files
from tests.cli.conftest import Run, run

__all__ = ["run"]

SCHEMA: dict[str, Any] = json.loads(files("fedanon.io").joinpath("manifest.schema.json").read_text(encoding="utf-8"))
GATEWAY = """
schema = "ward.toml"
claim = "people"
time = "time"
[method]
k = 5
delay = 3600
[source]
kind = "file"
path = "readings.jsonl"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def undescribed(document: dict[str, Any], kind: str) -> set[str]:
    return set(document) - set(SCHEMA["$defs"][kind]["properties"])


def manifests(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*.manifest.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "command",
    [
        "anonymize north.csv --schema schema.toml --k 5 -o out.csv",
        "anonymize north.csv --schema schema.toml --k 5 --require l=2:diagnosis -o out.xlsx",
        "anonymize north.csv --schema schema.toml --k 5 --require l=2:diagnosis -o out.parquet --series",
        "anonymize north.csv --schema schema.toml --method identity -o out.csv",
        "sdc apply north.csv --schema schema.toml --step invariant_pram:sex -o out.csv",
    ],
)
def test_releases_keep_it(command: str, folder: Path, run: Run) -> None:
    assert run(*command.split()).code == 0
    [document] = manifests(folder)
    Draft202012Validator(SCHEMA).validate(document)
    assert undescribed(document, "release") == set()
    assert undescribed(document["provenance"], "provenance") == set()


def test_windows_of_a_gateway_keep_it(folder: Path, run: Run) -> None:
    (folder / "gateway.toml").write_text(GATEWAY, encoding="utf-8")
    assert run("stream", "replay", "gateway.toml", "readings.jsonl").code == 0
    found = list(manifests(folder))
    assert found
    for document in found:
        Draft202012Validator(SCHEMA).validate(document)
        assert undescribed(document, "window") == set()


def test_a_manifest_without_a_claim_breaks_it(folder: Path, run: Run) -> None:
    run("anonymize", "north.csv", "--schema", "schema.toml", "--k", "5", "-o", "out.csv")
    [document] = manifests(folder)
    del document["claim"]
    assert list(Draft202012Validator(SCHEMA).iter_errors(document))
