"""`fedanon stream` as a person runs it: replay, check, status, and what it says when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.streams.test_gateway import gateway_file, write_readings


@pytest.mark.parametrize("claim", ["records", "people"])
def test_replay_check_status(run: Run, tmp_path: Path, claim: str) -> None:
    config = gateway_file(tmp_path, claim, sink='format = "csv"')
    rows = write_readings(tmp_path / "in.jsonl", 800)
    made = run("stream", "replay", config, tmp_path / "in.jsonl", "--json")
    assert made.code == 0, made.err
    assert made.json["taken"] == len(rows) == made.json["published"] + made.json["dropped"]
    assert run("stream", "status", config, "--json").json["published"] == made.json["published"]
    checked = run("stream", "check", tmp_path / "windows", "--schema", tmp_path / "ward.toml", "--json")
    assert checked.code == 0, checked.err
    assert checked.json["rows"] == made.json["published"]
    assert checked.json["broken"] == 0
    shown = run("stream", "check", tmp_path / "windows", "--schema", tmp_path / "ward.toml").out
    counted = "pseudonyms" if claim == "people" else "records"
    assert f"After every window, every class holds at least k=4 {counted}." in shown
    assert ("here records were counted" in shown) == (claim == "records")


@pytest.mark.parametrize("claim", ["records", "people"])
def test_attack_prints_every_rate_beside_a_guess(run: Run, tmp_path: Path, claim: str) -> None:
    config = gateway_file(tmp_path, claim)
    write_readings(tmp_path / "in.jsonl", 800)
    found = run("stream", "attack", config, tmp_path / "in.jsonl", "--json").json
    names = {result["attack"] for result in found["results"]}
    assert names | set(found["not_tried"]) == {"intersection", "timing", "window_homogeneity"}
    assert ("timing" in names) == (claim == "people")
    assert all(result["low"] <= result["rate"] <= result["high"] for result in found["results"])
    assert "Intersection over time" in run("stream", "attack", config, tmp_path / "in.jsonl").out
    again = run("attack", tmp_path / "in.jsonl", "--stream", config, "--json").json
    assert [r["rate"] for r in again["results"]] == [r["rate"] for r in found["results"]]
    assert run("attack", tmp_path / "in.jsonl", "--stream", config, "--k", "3").code == 2


def test_attack_takes_what_a_gateway_takes(run: Run, tmp_path: Path) -> None:
    """Lines that do not parse or fit are left out, and a clock that goes back stands still, as in a replay."""
    config = gateway_file(tmp_path)
    rows = write_readings(tmp_path / "in.jsonl", 800)
    clean = run("stream", "attack", config, tmp_path / "in.jsonl", "--json").json
    lines = [json.dumps(row) for row in rows]
    lines[50:50] = ["{broken SECRET", "[]", json.dumps({**rows[0], "age": "SECRET"})]
    (tmp_path / "odd.jsonl").write_text("\n".join(lines), encoding="utf-8")
    odd = run("stream", "attack", config, tmp_path / "odd.jsonl", "--json")
    assert odd.code == 0, odd.err
    assert [(r["rate"], r["n"]) for r in odd.json["results"]] == [(r["rate"], r["n"]) for r in clean["results"]]
    assert "SECRET" not in odd.out + odd.err
    (tmp_path / "back.jsonl").write_text("\n".join([*lines, json.dumps(rows[0])]), encoding="utf-8")
    assert run("stream", "attack", config, tmp_path / "back.jsonl").code == 0


def test_an_empty_file_publishes_nothing_and_cannot_be_attacked(run: Run, tmp_path: Path) -> None:
    config = gateway_file(tmp_path)
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert run("stream", "replay", config, tmp_path / "empty.jsonl", "--json").json["taken"] == 0
    assert "inf" not in run("stream", "status", config).out
    attacked = run("stream", "attack", config, tmp_path / "empty.jsonl")
    assert (attacked.code, "has no reading that fits the schema" in attacked.err) == (3, True)


def test_windows_are_not_checked_by_the_schema_of_something_else(run: Run, tmp_path: Path) -> None:
    config = gateway_file(tmp_path, sink='format = "csv"')
    write_readings(tmp_path / "in.jsonl", 800)
    run("stream", "replay", config, tmp_path / "in.jsonl")
    other = tmp_path / "other.toml"
    other.write_text((tmp_path / "ward.toml").read_text(encoding="utf-8").replace("age", "height"), encoding="utf-8")
    checked = run("stream", "check", tmp_path / "windows", "--schema", other)
    assert checked.code == 3
    assert "lacks quasi-identifiers of the schema: height" in checked.err


def test_rows_that_are_taken_away_break_the_claim(run: Run, tmp_path: Path) -> None:
    config = gateway_file(tmp_path, "records", sink='format = "csv"')
    write_readings(tmp_path / "in.jsonl", 800)
    run("stream", "replay", config, tmp_path / "in.jsonl")
    first = sorted((tmp_path / "windows").glob("*.csv"))[0]
    lines = first.read_text(encoding="utf-8").splitlines(keepends=True)
    first.write_text("".join(lines[:2]), encoding="utf-8")
    checked = run("stream", "check", tmp_path / "windows", "--schema", tmp_path / "ward.toml", "--json")
    assert checked.code == 4
    assert json.loads(checked.out)["broken"] >= 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k = 4", "k = 1", "The 'k' parameter of StickyClasses must be an int >= 2"),
        ("k = 4", "k = 4\nfactor = 2", "StickyClasses has no parameter factor"),
        ('time = "time"', 'time = "clock"', "'clock' of gateway.toml is not declared"),
        ('time = "time"', "", "needs the 'time' column"),
        ('claim = "people"', 'claim = "nobody"', "must be one of 'records', 'people'"),
        ("[sink]", "[sink", "cannot be read as TOML"),
    ],
)
def test_a_wrong_gateway_is_named(run: Run, tmp_path: Path, old: str, new: str, message: str) -> None:
    config = gateway_file(tmp_path)
    write_readings(tmp_path / "in.jsonl", 20)
    config.write_text(config.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    failed = run("stream", "replay", config, tmp_path / "in.jsonl")
    assert failed.code == 2
    assert message in failed.err


def test_what_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    config = gateway_file(tmp_path)
    assert run("stream", "replay", config, tmp_path / "none.jsonl").code == 3
    assert run("stream", "check", tmp_path, "--schema", tmp_path / "ward.toml").code == 3
    assert "has it been started" in run("stream", "status", gateway_file(tmp_path / "other")).err
