"""`fedanon attack`: on a method, on a released file, and what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

FEW = "record_linkage,homogeneity,composition,minimality"


@pytest.fixture
def attacked(ward: Path, schema: Path) -> list[str | Path]:
    return ["attack", ward, "--schema", schema]


def test_a_method_is_attacked(run: Run, attacked: list[str | Path], tmp_path: Path) -> None:
    made = run(*attacked, "--k", "4", "--suite", FEW, "--seed", "3", "--json", "-o", tmp_path / "folder")
    assert made.code == 0, made.err
    assert made.json["method"] == "mondrian"
    assert [result["attack"] for result in made.json["results"]] == ["record_linkage", "homogeneity", "composition"]
    assert set(made.json["not_tried"]) == {"minimality"}
    assert all(result["seed"] == 3 for result in made.json["results"])
    assert json.loads((tmp_path / "folder" / "attacks.json").read_text(encoding="utf-8")) == made.json


def test_the_same_seed_gives_the_same_results(run: Run, attacked: list[str | Path]) -> None:
    first, second = (run(*attacked, "--k", "4", "--suite", "release", "--json").json for _ in range(2))
    for results in (first, second):
        for result in results["results"]:
            del result["seconds"]
    assert first == second


def test_a_released_file_is_attacked_beside_its_original(
    run: Run, attacked: list[str | Path], ward: Path, schema: Path, tmp_path: Path
) -> None:
    out = tmp_path / "released.csv"
    assert run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out).code == 0
    from_file = run(*attacked, "--release", out, "--suite", FEW, "--json")
    assert from_file.code == 0, from_file.err
    assert from_file.json["method"] is None
    assert set(from_file.json["not_tried"]) == {"composition", "minimality"}
    from_method = run(*attacked, "--k", "4", "--suite", FEW, "--json")
    rates = [{r["attack"]: r["rate"] for r in found.json["results"]} for found in (from_file, from_method)]
    assert rates[0]["record_linkage"] == pytest.approx(rates[1]["record_linkage"])
    assert rates[0]["homogeneity"] == pytest.approx(rates[1]["homogeneity"])


def test_values_of_the_file_count_not_those_of_the_original(
    run: Run, attacked: list[str | Path], ward: Path, schema: Path, tmp_path: Path
) -> None:
    out = tmp_path / "released.csv"
    run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out, "--keep-order")
    out.write_text(out.read_text(encoding="utf-8").replace("flu", "unknown"), encoding="utf-8")
    found = run(*attacked, "--release", out, "--suite", "homogeneity", "--json")
    assert found.json["results"][0]["rate"] == 0


def test_the_report_ends_in_plain_words(run: Run, attacked: list[str | Path], tmp_path: Path) -> None:
    plot = tmp_path / "attacks.png"
    shown = run(*attacked, "--k", "4", "--suite", FEW, "--plot", plot)
    assert shown.code == 0, shown.err
    assert "95 % interval" in shown.out
    assert "Not tried: minimality" in shown.out
    assert "do better than their baseline by more than chance" in " ".join(shown.out.split())
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_the_exit_code_is_four_above_the_rate_that_is_allowed(run: Run, attacked: list[str | Path]) -> None:
    arguments = [*attacked, "--k", "4", "--suite", "homogeneity"]
    assert run(*arguments).code == 0
    failed = run(*arguments, "--fail-above", "0.1")
    assert failed.code == 4
    assert "homogeneity" in failed.err
    assert run(*arguments, "--fail-above", "1").code == 0


def test_parameters_reach_the_attack(run: Run, attacked: list[str | Path]) -> None:
    arguments = [*attacked, "--k", "2", "--suite", "composition", "--json"]
    found = run(*arguments, "--set-attack", "composition.shared=10", "--set-attack", "composition.people=20")
    assert found.json["results"][0]["details"]["shared"] == 10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--k", "4", "--suite", "linkage"], "Unknown attack"),
        (["--k", "4", "--set-attack", "shared=3"], "ATTACK.NAME=VALUE"),
        (["--k", "4", "--suite", "homogeneity", "--set-attack", "composition.shared=3"], "not in the suite"),
        (["--release", "x.csv", "--k", "4"], "--release"),
        (["--k", "4", "--suite", "homogeneity", "--set-attack", "homogeneity.column=age"], "quasi_identifying"),
    ],
)
def test_wrong_options_are_refused_or_told(
    run: Run, attacked: list[str | Path], arguments: list[str], words: str
) -> None:
    failed = run(*attacked, *arguments)
    assert words in failed.out + failed.err


def test_attacks_are_listed_with_what_they_mean(run: Run) -> None:
    listed = run("attack", "--list", "--json").json
    assert {"record_linkage", "composition_federation", "downcoding"} <= {entry["name"] for entry in listed}
    assert all(entry["meaning"] for entry in listed)
    assert "record_linkage" in run("attack", "--list").out


def test_who_is_most_exposed_is_shown_without_cells(
    run: Run, attacked: list[str | Path], ward: Path, tmp_path: Path
) -> None:
    out = tmp_path / "records.csv"
    found = run(*attacked, "--k", "4", "--suite", "record_linkage", "--records", out, "--json")
    assert found.code == 0, found.err
    (risk,) = found.json["record_risks"]
    assert risk["attack"] == "record_linkage"
    assert risk["most"] == 1
    assert risk["most_chance"] <= 0.25
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "row,record_linkage,record_linkage_most_exposed"
    assert len(lines) == 1 + found.json["n"]
    assert sum(line.endswith("True") for line in lines) == 1
    printed = run(*attacked, "--k", "4", "--suite", "record_linkage")
    assert "The most exposed 1 %" in printed.out
    refused = run(*attacked, "--k", "4", "--suite", "record_linkage", "--records", ward)
    assert refused.code == 2
    again = run(*attacked, "--k", "4", "--suite", "record_linkage", "--records", out)
    assert again.code == 2, "not replaced without --force"
