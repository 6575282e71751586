"""Bounds at the command line: a table or a data set in, what was proved out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Run


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"]).to_csv(path, index=False)
    return path


def test_numbers_are_bounded_by_their_squared_error(run: Run, numbers: Path) -> None:
    told = run("bound", numbers, "--qi", "all", "--k", "3", "--seconds", "5", "--loss", "60", "--json")
    assert told.code == 0, told.err
    assert told.json["objective"] == "sse"
    assert 0 < told.json["bound"] < 60
    assert told.json["gap"] == pytest.approx(60 / told.json["bound"] - 1)
    text = run("bound", numbers, "--qi", "all", "--k", "3", "--seconds", "5", "--loss", "0.001")
    assert "Proved: no partition" in text.out
    assert "it is not the loss of such a partition" in text.out.replace("\n", " ")


def test_mixed_tables_are_bounded_by_their_cells(run: Run, ward: Path, schema: Path) -> None:
    told = run("bound", ward, "--schema", schema, "--k", "4", "--seconds", "5", "--json")
    assert told.code == 0, told.err
    assert told.json["objective"] == "ncp"
    made = run("anonymize", ward, "--schema", schema, "--k", "4", "--json")
    assert told.json["bound"] <= made.json["ncp"]


def test_a_release_notes_its_gap(run: Run, numbers: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    made = run("anonymize", numbers, "--qi", "all", "--method", "mdav", "--k", "3", "--bound", "5", "-o", out, "--json")
    assert made.code == 0, made.err
    assert made.json["gap"] == pytest.approx(made.json["il"] / made.json["bound"] - 1)
    manifest = json.loads(out.with_name("out.csv.manifest.json").read_text())
    assert any("Proved: no partition" in note for note in manifest["provenance"]["notes"])
    assert f"IL {made.json['bound']:.5g} %" in " ".join(manifest["provenance"]["notes"])


def test_errors(run: Run, numbers: Path, tmp_path: Path) -> None:
    assert run("bound", numbers, "--qi", "all", "--k", "41").code == 5
    assert run("bound", numbers, "--qi", "all", "--k", "3", "--objective", "other").code == 2
    assert run("bound", tmp_path / "none.csv", "--qi", "all", "--k", "3").code in (2, 3)
    none = run("anonymize", numbers, "--qi", "all", "--method", "individual_ranking", "--k", "3", "--bound", "1")
    assert none.code == 2
    assert "promises none" in none.err


def test_compare_shows_the_loss_of_means_for_numbers(run: Run, numbers: Path, ward: Path, schema: Path) -> None:
    told = run("compare", numbers, "--qi", "all", "--methods", "mdav,mondrian", "--k", "3")
    assert told.code == 0, told.err
    assert "IL: squared error" in told.out
    mixed = run("compare", ward, "--schema", schema, "--methods", "mondrian", "--k", "3")
    assert "IL: squared error" not in mixed.out


def test_numbers_publish_means_unless_more_is_asked(run: Run, numbers: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    asked = (
        "anonymize",
        numbers,
        "--qi",
        "all",
        "--method",
        "anneal",
        "--k",
        "3",
        "--set",
        "iterations=20000",
        "--json",
    )
    chosen = run(*asked, "-o", out, "--bound", "2")
    assert chosen.code == 0, chosen.err
    assert chosen.json["parameters"]["objective"] == "sse"
    assert any("Class means are published" in note for note in chosen.json["notes"])
    assert chosen.json["gap"] == pytest.approx(chosen.json["il"] / chosen.json["bound"] - 1)
    manifest = json.loads(out.with_name("out.csv.manifest.json").read_text())
    assert manifest["provenance"]["parameters"]["objective"] == "sse"
    cells = run(*asked, "--set", "objective=ncp")
    assert chosen.json["il"] < cells.json["il"]
    assert cells.json["truthfulness"] == 1
    assert not cells.json["notes"]
