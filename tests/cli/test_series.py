"""Three months through the command line: released, verified, attacked, reported; and what stops a series."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import SCHEMA, Run

DIAGNOSES = ["flu"] * 7 + ["gout", "asthma", "measles"]


@pytest.fixture(scope="module")
def months() -> list[pd.DataFrame]:
    """A hundred and twenty patients a month; a tenth leave and come, one changes the diagnosis, one returns."""
    rng = np.random.default_rng(3)
    crowd = pd.DataFrame(
        {
            "patient": [f"P{i:03d}" for i in range(160)],
            "age": rng.integers(20, 90, 160),
            "sex": rng.choice(["F", "M"], 160),
            "unit": rng.choice(["cardiac", "orthopaedics", "oncology", "general"], 160),
            "diagnosis": rng.choice(DIAGNOSES, 160),
        }
    )
    first, second, third = crowd[:120].copy(), crowd[12:132].copy(), crowd[24:144].copy()
    third.loc[30, "diagnosis"] = "gout" if third.loc[30, "diagnosis"] == "flu" else "flu"
    return [first, second, pd.concat([third, crowd[3:4]])]


@pytest.fixture
def series(run: Run, months: list[pd.DataFrame], tmp_path: Path) -> Path:
    """The folder with three tables and their releases."""
    (tmp_path / "ward.toml").write_text(SCHEMA.replace('target = "diagnosis"\n', ""))
    for number, month in enumerate(months, 1):
        month.to_csv(tmp_path / f"m{number}.csv", index=False)
        made = run("anonymize", *arguments(tmp_path, number), *earlier(tmp_path, number))
        assert made.code == 0, made.err
    return tmp_path


def arguments(folder: Path, number: int) -> list[str | Path]:
    asked = ["--schema", folder / "ward.toml", "--k", "5", "--require", "l=2:diagnosis", "--seed", "1"]
    out = ["-o", folder / f"r{number}.csv", "--row-key", folder / f"r{number}.key"]
    return [folder / f"m{number}.csv", *asked, *out]


def earlier(folder: Path, number: int) -> list[str | Path]:
    if number == 1:
        return ["--series"]
    return [part for i in range(1, number) for part in ("--previous", folder / f"r{i}.csv.manifest.json")]


def beside(folder: Path, number: int) -> list[str | Path]:
    return ["--schema", folder / "ward.toml", *earlier(folder, number), "--row-key", folder / f"r{number}.key"]


def test_three_months_are_verified_attacked_and_reported(run: Run, series: Path) -> None:
    original = ["--original", series / "m3.csv"]
    verified = run("verify", series / "r3.csv", *beside(series, 3), *original, "--json")
    assert verified.code == 0, verified.out
    outcomes = {check["name"]: check["outcome"] for check in verified.json["checks"]}
    assert set(outcomes.values()) == {"pass"}
    assert "values left possible by 3 releases together: 2 of 'diagnosis'" in outcomes
    checked = run("check", series / "r3.csv", *beside(series, 3), *original, "--json")
    assert checked.code == 0, checked.err
    assert checked.json["conclusion"]["measured"]["promises"] == {"kept": 3, "broken": 0, "not_checked": 0}
    attacked = run(
        "attack", series / "m3.csv", "--release", series / "r3.csv", *beside(series, 3), "--suite", "intersection",
        "--json",
    )  # fmt: skip
    (found,) = attacked.json["results"]
    assert found["rate"] == 0
    assert found["details"]["releases"] == 3
    page = series / "page.html"
    reported = run("report", "--privacy", series / "r3.csv", *beside(series, 3), *original, "--no-attacks", "-o", page)
    assert reported.code == 0, reported.err
    text = page.read_text()
    assert "The 3 releases of the series together leave at least 2 values" in text
    assert "Outside the series" in text


def test_what_is_held_back_and_counterfeit_is_counted_and_said(run: Run, series: Path) -> None:
    document = json.loads((series / "r3.csv.manifest.json").read_text())
    facts = document["claim"]["series"]
    table, released = pd.read_csv(series / "m3.csv"), pd.read_csv(series / "r3.csv")
    assert len(released) == document["rows"] == len(table) + facts["counterfeit_rows"]
    assert (released["age"] == "*").sum() == document["suppressed"] == sum(facts["held_back"].values())
    assert facts["held_back"]["value changed"] == 1
    said = " ".join(document["provenance"]["notes"])
    assert "1 (value changed)" in said
    assert "together, the 3 releases of the series leave at least 2 values of 'diagnosis'" in document["claim_text"]


def test_no_person_id_is_in_the_ledger(series: Path) -> None:
    ledger, key = series / "ward.ledger.json", series / "ward.ledger.key"
    assert "P0" not in ledger.read_text()
    assert {path.stat().st_mode & 0o777 for path in (ledger, key)} == {0o600}
    assert not (series / "ward.ledger.pending.json").exists()


def test_a_promise_is_left_open_without_the_earlier_releases(run: Run, series: Path) -> None:
    verified = run("verify", series / "r3.csv", "--json")
    assert verified.code == 0
    left = {check["name"] for check in verified.json["checks"] if check["outcome"] == "open"}
    assert any("3 releases together" in name for name in left)
    assert verified.json["conclusion"]["level"] == "not_checked"


def test_a_changed_ledger_or_release_is_never_verified(run: Run, series: Path) -> None:
    ledger = series / "ward.ledger.json"
    kept = ledger.read_text()
    ledger.write_text(kept.replace('"start"', '"stop"').replace(", 0, null, []]", ", 1, null, []]", 1))
    told = run("verify", series / "r3.csv", *beside(series, 3))
    assert told.code == 3
    assert "was changed or is damaged" in told.err
    ledger.write_text(kept)
    released = (series / "r2.csv").read_text()
    (series / "r2.csv").write_text(released.replace("flu", "gout", 1))
    told = run("verify", series / "r3.csv", *beside(series, 3))
    assert told.code == 3
    assert "Not the files that were written: r2.csv" in told.err


def test_all_releases_must_be_named_and_no_others(run: Run, series: Path) -> None:
    shutil.copy(series / "m3.csv", series / "m4.csv")
    told = run("anonymize", *arguments(series, 4), *earlier(series, 3))
    assert told.code == 2
    assert "The series has 3 releases" in told.err
    assert "r3.csv" in told.err
    foreign = series / "other.csv.manifest.json"
    foreign.write_text((series / "r1.csv.manifest.json").read_text() + " ")
    told = run("anonymize", *arguments(series, 4), *earlier(series, 4), "--previous", foreign)
    assert told.code == 2
    assert "does not know the release of other.csv.manifest.json" in told.err
    told = run("anonymize", *arguments(series, 4), "--series")
    assert told.code == 2
    assert "A series was begun" in told.err
    assert not (series / "r4.csv").exists()


def test_without_an_output_the_next_release_is_a_trial(run: Run, series: Path) -> None:
    before = (series / "ward.ledger.json").read_bytes()
    shutil.copy(series / "m3.csv", series / "m4.csv")
    tried = run("anonymize", *arguments(series, 4)[:-4], *earlier(series, 4), "--json")
    assert tried.code == 0, tried.err
    assert "together, the 4 releases" in tried.json["claim"]
    assert (series / "ward.ledger.json").read_bytes() == before


def test_key_and_schema_of_the_series_are_needed(run: Run, series: Path) -> None:
    shutil.copy(series / "m3.csv", series / "m4.csv")
    key, schema = series / "ward.ledger.key", series / "ward.toml"
    kept = key.read_text()
    for text, said in ((None, "is missing"), ("ab" * 32, "is not that of the ledger"), ("?", "cannot be read")):
        key.unlink(missing_ok=True)
        if text is not None:
            key.write_text(text)
        told = run("anonymize", *arguments(series, 4), *earlier(series, 4))
        assert told.code == 3
        assert said in told.err
    key.write_text(kept)
    schema.write_text(schema.read_text().replace("[0, 110]", "[0, 120]"))
    told = run("anonymize", *arguments(series, 4), *earlier(series, 4))
    assert told.code == 3
    assert "is that of another schema" in told.err
    assert not (series / "r4.csv").exists()


def test_what_a_series_needs_is_said(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    asked = [ward, "--schema", schema, "--k", "4", "-o", tmp_path / "out.csv", "--series"]
    told = run("anonymize", *asked)
    assert told.code == 2
    assert "--require l=2:COLUMN" in told.err
    nobody = tmp_path / "nobody.toml"
    nobody.write_text(SCHEMA.replace('person_id = "patient"', "one_row_per_person = true"))
    told = run("anonymize", ward, "--schema", nobody, "--k", "4", "--require", "l=2:diagnosis", *asked[5:])
    assert told.code == 2
    assert "names no person_id" in told.err
    told = run("anonymize", *asked, "--require", "l=2:diagnosis", "--keep-order")
    assert told.code == 2
    assert "--keep-order" in told.err
    assert not list(tmp_path.glob("*.ledger.json"))
    told = run("anonymize", *asked[:-1], "--require", "l=2:diagnosis", "--previous", tmp_path / "none.manifest.json")
    assert told.code == 2
    assert "begin the series with --series" in told.err
