"""What a person sees of the file that is written, and what commands make of it afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fedanon.attacks.base import Attack
from fedanon.attacks.context import AttackContext
from fedanon.attacks.suite import AttackReport
from tests.cli.conftest import Run


def test_changed_cells_are_shown_and_never_called_unchanged(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    table = [ward, "--schema", schema, "--k", "4"]
    told = run("anonymize", *table, "-o", out)
    assert told.code == 0, told.err
    said = " ".join(told.out.split())
    assert "an apostrophe before text like a formula in diagnosis (1 cells)" in said
    assert "published as they are, apostrophes apart" in said
    assert "rows in random order" in said
    assert "Read as utf-8, separator ','" in said
    assert run("report", "--privacy", out, "--schema", schema, "-o", page).code == 0
    text = page.read_text()
    assert "unchanged, but for an apostrophe before 1 cells" in text
    assert "Published unchanged" not in text
    plain = tmp_path / "plain.csv"
    told = run("anonymize", *table, "-o", plain, "--no-formula-guard", "--json")
    assert told.json["changes"] == []
    assert "=cmd" in pd.read_csv(plain)["diagnosis"].tolist()
    assert run("verify", plain, "--original", ward).code == 0


def test_a_kept_order_is_said_in_the_report(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    assert "in the order of the input" in run(
        "anonymize", ward, "--schema", schema, "--k", "4", "-o", out, "--keep-order"
    ).out  # fmt: skip
    assert run("report", "--privacy", out, "--schema", schema, "-o", page).code == 0
    assert "The rows are in the order of the original" in page.read_text()


def test_a_row_key_serves_every_command(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    """Classes of fixed intervals overlap nowhere, those of k-member do; the diagnosis is the same for nearly all."""
    out, key = tmp_path / "out.csv", tmp_path / "rows.json"
    table = [ward, "--schema", schema]
    made = run("anonymize", *table, "--method", "oka", "--k", "6", "-o", out, "--row-key", key, "--json")
    assert made.code == 0, made.err
    given = ["--original", ward, "--row-key", key]
    checked = run("check", out, "--schema", schema, *given, "--json")
    assert checked.json["ncp"] == made.json["ncp"]
    assert checked.json["linkage_expected"] == made.json["linkage_expected"]
    verified = run("verify", out, *given, "--rebuild", "--json")
    assert {check["outcome"] for check in verified.json["checks"]} == {"pass"}
    direct = run("attack", *table, "--method", "oka", "--k", "6", "--suite", "record_linkage,homogeneity", "--json")
    read = run("attack", *table, "--release", out, "--row-key", key, "--suite", "record_linkage,homogeneity", "--json")
    assert [one["rate"] for one in read.json["results"]] == [one["rate"] for one in direct.json["results"]]
    page = tmp_path / "page.html"
    assert run("report", "--privacy", out, "--schema", schema, *given, "-o", page, "--no-attacks").code == 0
    assert run("check", out, "--schema", schema, "--original", ward, "--row-key", out).code == 3
    assert run("anonymize", *table, "--k", "4", "-o", tmp_path / "x.csv", "--row-key", key).code == 2


def test_attacks_know_what_the_manifest_says(
    run: Run, ward: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns generalized alone, and the people of the original."""
    from fedanon.cli import attack as command

    seen: list[AttackContext] = []
    plain = command._run
    out = tmp_path / "out.csv"
    table = [ward, "--schema", schema]
    made = ["--method", "fixed_interval", "--set", "n_bins=3"]
    assert run("anonymize", *table, *made, "-o", out, "--keep-order").code == 0

    def noting(context: AttackContext, attacks: list[tuple[str, Attack]]) -> AttackReport:
        seen.append(context)
        return plain(context, attacks)

    monkeypatch.setattr(command, "_run", noting)
    assert run("attack", *table, "--release", out, "--suite", "record_linkage").code == 0
    assert seen[0].release.recoding.columnwise
    assert seen[0].release.persons is not None
    document = json.loads(Path(f"{out}.manifest.json").read_text())
    assert document["columnwise"]


def test_a_brazilian_file_stays_one(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(ward, dtype=str)
    frame["age"] = frame["age"] + ",5"
    frame["diagnosis"] = "gripe é"
    frame.to_csv(ward, index=False, sep=";", encoding="latin-1")
    schema.write_text(schema.read_text().replace("integer = true", "integer = false"))
    out = tmp_path / "out.csv"
    made = run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out, "--json")
    assert made.code == 0, made.err
    assert made.json["read_as"] == "cp1252, separator ';', decimal comma, header line, quotes where needed"
    assert made.json["changes"] == []
    released = pd.read_csv(out, sep=";", encoding="cp1252")
    assert released["age"].str.fullmatch(r"\[\d+,5; \d+,5\]|\d+,5").all()
    assert set(released["diagnosis"]) == {"gripe é"}
    assert run("verify", out, "--original", ward, "--rebuild").code == 0
    asked = ["--separator", "tab", "--decimal", ".", "--encoding-out", "utf-8"]
    other = tmp_path / "other.csv"
    made = run("anonymize", ward, "--schema", schema, "--k", "4", "-o", other, *asked, "--json")
    assert [change["kind"] for change in made.json["changes"]] == ["encoding", "separator", "decimal"]
    assert "\t" in other.read_text(encoding="utf-8").splitlines()[0]
    assert run("verify", other, "--original", ward, "--rebuild").code == 0
