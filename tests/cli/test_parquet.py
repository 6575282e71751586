"""Parquet files at the command line: the same release as from CSV, and the same errors."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedanon.io.parquet import read_columns
from tests.cli.conftest import Run

METRICS = ("classes", "k_reached", "suppressed", "ncp", "truthfulness", "linkage_expected")


@pytest.fixture
def parquet(ward: Path) -> Path:
    """The forty patients, typed."""
    frame = pd.read_csv(ward).astype({"sex": "category", "unit": "category"})
    path = ward.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=9)
    return path


@pytest.mark.parametrize("made_from", ["csv", "parquet"])
@pytest.mark.parametrize("written_as", ["csv", "parquet"])
def test_every_way_gives_the_same_release(
    run: Run, ward: Path, parquet: Path, schema: Path, tmp_path: Path, made_from: str, written_as: str
) -> None:
    source, out = {"csv": ward, "parquet": parquet}[made_from], tmp_path / f"out.{written_as}"
    made = run("anonymize", source, "--schema", schema, "--k", "4", "-o", out, "--keep-order", "--json")
    assert made.code == 0, made.err
    plain = tmp_path / "plain.csv"
    expected = run("anonymize", ward, "--schema", schema, "--k", "4", "-o", plain, "--keep-order", "--json")
    assert {name: made.json[name] for name in METRICS} == {name: expected.json[name] for name in METRICS}
    released = pd.read_csv(out, dtype=str) if written_as == "csv" else pq.read_table(out).to_pandas()
    guarded = pd.read_csv(plain, dtype=str)
    if written_as == "parquet":
        guarded["diagnosis"] = guarded["diagnosis"].str.removeprefix("'")  # no program runs a formula in Parquet
    assert released.astype(str).to_dict("list") == guarded.to_dict("list")
    checked = run("check", out, "--schema", schema, "--original", source, "--json")
    assert checked.code == 0, checked.err
    assert checked.json["manifest"]["verified_hash"]
    for name in METRICS:
        assert checked.json[name] == pytest.approx(made.json[name])


def test_no_more_columns_are_read_than_needed(
    run: Run, parquet: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()

    def noting(path, names, **options):
        seen.update(names)
        return read_columns(path, names, **options)

    monkeypatch.setattr("fedanon.io.parquet_source.read_columns", noting)
    monkeypatch.setattr("fedanon.io.release_file.read_columns", noting)
    out = tmp_path / "out.parquet"
    kept = ["--keep-order", "--force"]
    assert run("anonymize", parquet, "--schema", schema, "--k", "4", "-o", out, *kept).code == 0
    assert run("check", out, "--schema", schema, "--original", parquet).code == 0
    assert seen == {"patient", "age", "sex", "unit"}
    needed = ["--set", "require=t=1:diagnosis"]
    made = run("anonymize", parquet, "--schema", schema, "--k", "4", *needed, "-o", out, *kept)
    assert made.code == 0, made.err
    assert "diagnosis" in seen
    assert run("check", out, "--schema", schema).code == 0


def test_people_are_counted(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(ward)
    path, out = tmp_path / "visits.parquet", tmp_path / "out.parquet"
    pd.concat([frame, frame]).to_parquet(path, index=False)
    made = run("anonymize", path, "--schema", schema, "--k", "4", "-o", out, "--json")
    assert (made.json["n"], made.json["people"]) == (80, 40)
    assert made.json["k_reached"] >= 4
    assert run("check", out, "--schema", schema, "--original", path, "--json").json["k_reached"] >= 4


def test_a_changed_release_is_refused(run: Run, parquet: Path, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert run("anonymize", parquet, "--schema", schema, "--k", "4", "-o", out).code == 0
    pq.write_table(pq.read_table(out).slice(1), out)
    refused = run("check", out, "--schema", schema)
    assert refused.code == 4
    assert "SHA-256" in refused.err


def test_numbers_without_a_schema_stream_too(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "numbers.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"a": [i % 5 for i in range(30)], "b": [i * 1.5 for i in range(30)], "c": range(30)}), path)
    undecided = run("anonymize", path, "--qi", "a,b", "--k", "3", "-o", out)
    assert (undecided.code, out.exists()) == (3, False)
    done = run("anonymize", path, "--qi", "a,b,c", "--k", "3", "-o", out, "--json")
    assert done.code == 0, done.err
    assert json.loads(Path(f"{out}.manifest.json").read_text())["claim"]["k"] == 3


def test_compare_reads_parquet(run: Run, parquet: Path, schema: Path) -> None:
    done = run("compare", parquet, "--schema", schema, "--methods", "mondrian", "--k", "4", "--json")
    assert done.code == 0, done.err


def test_a_schema_is_inferred_as_from_csv(run: Run, ward: Path, parquet: Path) -> None:
    done = run("schema", "infer", parquet)
    assert done.code == 0, done.err
    assert done.out == run("schema", "infer", ward).out


def test_errors_are_those_of_a_csv(run: Run, parquet: Path, schema: Path, tmp_path: Path) -> None:
    columns = pq.read_table(parquet)
    changed = tmp_path / "changed.parquet"
    for table, message in (
        (columns.drop_columns(["age"]), "lack 1 declared columns: age"),
        (columns.append_column("more", columns["age"]), "does not declare: more"),
        (columns.slice(0, 0), "no rows"),
    ):
        pq.write_table(table, changed)
        refused = run("anonymize", changed, "--schema", schema, "--k", "4", "-o", tmp_path / "out.parquet")
        assert refused.code == 3
        assert message in " ".join(refused.err.split())
    changed.write_text("age\n1\n")
    refused = run("anonymize", changed, "--schema", schema, "--k", "4", "-o", tmp_path / "out.parquet")
    assert "not a Parquet file" in " ".join(refused.err.split())
    assert not (tmp_path / "out.parquet").exists()
