"""What a command reads is never written over, by whatever name; what exists is replaced only by --force."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def commands(ward: Path, schema: Path) -> dict[str, list[str]]:
    table = [str(ward), "--schema", str(schema)]
    return {
        "anonymize": ["anonymize", *table, "--k", "4", "-o"],
        "sdc apply": ["sdc", "apply", *table, "--step", "mondrian:k=4", "-o"],
    }


@pytest.mark.parametrize("command", ["anonymize", "sdc apply"])
@pytest.mark.parametrize("alias", ["same", "dots", "symlink", "hardlink"])
@pytest.mark.parametrize("what", ["input", "schema"])
def test_inputs_are_never_written_over(run: Run, ward: Path, schema: Path, command: str, alias: str, what: str) -> None:
    target = {"input": ward, "schema": schema}[what]
    other = target.with_name(f"alias{target.suffix}")
    if alias == "symlink":
        other.symlink_to(target)
    elif alias == "hardlink":
        os.link(target, other)
    elif alias == "dots":
        other = target.parent / ".." / target.parent.name / target.name
    else:
        other = target
    before = target.read_bytes()
    told = run(*commands(ward, schema)[command], other, "--force")
    assert told.code == 2
    assert "never written over" in told.err or "must end in" in told.err
    assert target.read_bytes() == before
    assert other.read_bytes() == before


@pytest.mark.parametrize("command", ["anonymize", "sdc apply"])
def test_an_earlier_release_is_replaced_only_by_force(
    run: Run, ward: Path, schema: Path, tmp_path: Path, command: str
) -> None:
    out = tmp_path / "out.csv"
    call = commands(ward, schema)[command]
    assert run(*call, out).code == 0
    before = out.read_bytes()
    told = run(*call, out)
    assert told.code == 2
    assert "--force" in told.err
    assert out.read_bytes() == before
    assert run(*call, out, "--force").code == 0
    out.unlink()  # its manifest alone is there
    assert "manifest.json exists" in run(*call, out).err


@pytest.mark.parametrize("name", ["out.xls", "out.json", "out", "."])
def test_other_endings_and_folders_are_refused_before_anything_is_read(
    run: Run, ward: Path, schema: Path, tmp_path: Path, name: str
) -> None:
    told = run("anonymize", ward, "--schema", schema, "--k", "4", "-o", tmp_path / name)
    assert told.code == 2
    assert (".csv or .tsv or .txt or .parquet" in " ".join(told.err.split())) == (name != ".")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ward.csv", "ward.toml"]


def test_a_chain_is_not_written_over_the_manifest_it_starts_from(
    run: Run, ward: Path, schema: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    table = [ward, "--schema", schema]
    assert run("sdc", "apply", *table, "--step", "mondrian:k=4", "-o", out).code == 0
    before = Path(f"{out}.manifest.json").read_bytes()
    more = ["--from", f"{out}.manifest.json", "--undo", "--step", "mondrian:k=5", "-o", out, "--force"]
    assert run("sdc", "apply", *table, *more).code == 2
    assert Path(f"{out}.manifest.json").read_bytes() == before


def test_a_hierarchy_file_is_an_input(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    levels = tmp_path / "sex.csv"
    levels.write_text("F;*\nM;*\n")
    schema.write_text(schema.read_text().replace('values = ["F", "M"]', 'hierarchy = "sex.csv"'))
    told = run("anonymize", ward, "--schema", schema, "--k", "4", "-o", levels, "--force")
    assert told.code == 2
    assert levels.read_text() == "F;*\nM;*\n"


def test_other_commands_that_write(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "out.csv", [ward, "--schema", schema]
    assert run("anonymize", *table, "--k", "4", "-o", out).code == 0
    page, numbers, plot = tmp_path / "page.html", tmp_path / "risk.json", tmp_path / "plot.svg"
    proposal = tmp_path / "proposal.toml"
    calls = {
        page: ["report", "--privacy", out, "--schema", schema, "-o"],
        numbers: ["sdc", "risk", *table, "-o"],
        plot: ["compare", *table, "--methods", "mondrian", "--k", "4", "--plot"],
        proposal: ["schema", "infer", ward, "-o"],
        tmp_path / "attacks.json": ["attack", *table, "--k", "4", "--suite", "record_linkage", "-o"],
    }
    for path, call in calls.items():
        path.write_text("mine")
        told = run(*call, path)
        assert (told.code, path.read_text()) == (2, "mine"), call
        assert "--force" in told.err, call
        assert run(*call, path, "--force").code == 0, call
        assert path.read_text() != "mine"
    assert run("attack", *table, "--k", "4", "-o", tmp_path).code == 2  # attacks.json is there


def test_every_command_that_writes_leaves_a_line(
    run: Run, ward: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, table = tmp_path / "audit.jsonl", [ward, "--schema", schema]
    monkeypatch.setenv("FEDANON_AUDIT", str(log))
    assert run("sdc", "apply", *table, "--step", "mondrian:k=4", "-o", tmp_path / "out.csv").code == 0
    assert run("schema", "infer", ward, "-o", tmp_path / "new.toml").code == 0
    assert run("sdc", "risk", *table, "-o", tmp_path / "risk.json").code == 0
    assert run("compare", *table, "--methods", "mondrian", "--k", "4", "--plot", tmp_path / "p.svg").code == 0
    assert run("attack", *table, "--k", "4", "--suite", "record_linkage", "-o", tmp_path / "a.json").code == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["sdc apply", "schema infer", "sdc risk", "compare", "attack"]
    assert lines[0]["facts"]["output"] == "out.csv"
    assert len(lines[0]["facts"]["output_sha256"]) == 64
    assert run("audit", "verify", log).code == 0
