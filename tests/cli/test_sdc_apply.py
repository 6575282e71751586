"""`fedanon sdc apply` end to end: a chain of methods, its manifest, and the last step undone."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fedanon.errors import ConfigError
from fedanon.sdc.methods.step import Step, parse_step
from tests.cli.conftest import Outcome, Run

CHAIN = ("pram:sex,unit,keep=0.5", "additive_noise:age,c=0.2")


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("pram", Step("pram")),
        ("pram:sex,marital-status", Step("pram", ("sex", "marital-status"))),
        ("mondrian:k=5", Step("mondrian", (), {"k": "5"})),
        ("global_recoding:age,cuts=18,65,level=1", Step("global_recoding", ("age",), {"cuts": "18,65", "level": "1"})),
        ("pram:sex,matrix=C:/m.csv", Step("pram", ("sex",), {"matrix": "C:/m.csv"})),
    ],
)
def test_grammar(text: str, step: Step) -> None:
    assert parse_step(text) == step


@pytest.mark.parametrize("text", ["", ":sex", "pram:sex,,unit", "pram:k=1,k=2"])
def test_what_is_no_step_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_step(text)


@pytest.fixture
def apply(run: Run, ward: Path, schema: Path) -> Run:
    def call(*arguments: str | Path) -> Outcome:
        return run("sdc", "apply", ward, "--schema", schema, *arguments)

    return call


def steps(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--step", text)]


def test_a_chain_is_written_with_its_manifest(apply: Run, ward: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = apply(*steps(*CHAIN), "--seed", "4", "-o", out, "--keep-order", "--json")
    assert done.code == 0, done.err
    assert [step["method"] for step in done.json["steps"]] == ["pram", "additive_noise"]
    assert done.json["k_reached"] >= 1
    original, released = pd.read_csv(ward, dtype=str), pd.read_csv(out, dtype=str)
    assert list(released.columns) == ["age", "sex", "unit", "diagnosis"]
    changed = {name: int((released[name] != original[name]).sum()) for name in ("age", "sex", "unit")}
    counted = {name: count for step in done.json["steps"] for name, count in step["changed"].items()}
    assert counted == changed
    manifest = json.loads(Path(f"{out}.manifest.json").read_text())
    assert manifest["claim"] is None
    assert manifest["provenance"]["seed"] == 4
    assert manifest["provenance"]["parameters"]["steps"][1]["parameters"]["c"] == 0.2
    assert manifest["smallest_class"] == done.json["k_reached"]


def test_undo_gives_the_bytes_of_the_shorter_chain(apply: Run, tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.csv" for name in ("long", "short", "undone", "again", "replaced")}
    assert apply(*steps(*CHAIN, "mdav:age,k=3"), "--seed", "9", "--keep-order", "-o", files["long"]).code == 0
    assert apply(*steps(*CHAIN), "--seed", "9", "--keep-order", "-o", files["short"]).code == 0
    manifest = f"{files['long']}.manifest.json"
    assert apply("--from", manifest, "--undo", "--keep-order", "-o", files["undone"]).code == 0
    assert apply("--from", manifest, "--keep-order", "-o", files["again"]).code == 0
    assert same(files["undone"], files["short"])
    assert same(files["again"], files["long"])
    assert (
        apply("--from", manifest, "--undo", *steps("mdav:age,k=3"), "--keep-order", "-o", files["replaced"]).code == 0
    )
    assert same(files["replaced"], files["long"])


def same(first: Path, second: Path) -> bool:
    pairs = [(first, second), (Path(f"{first}.manifest.json"), Path(f"{second}.manifest.json"))]
    return all(a.read_bytes() == b.read_bytes() for a, b in pairs)


def test_columns_that_are_no_quasi_identifiers_are_masked(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    """A cost that is sensitive in the schema is changed and measured; the schema itself stays as it is."""
    lines = ward.read_text().splitlines()
    costs = ["cost", *(str(100 + 13 * i) for i in range(len(lines) - 1))]
    ward.write_text("".join(f"{line},{cost}\n" for line, cost in zip(lines, costs, strict=True)))
    schema.write_text(
        schema.read_text() + '[attributes.cost]\nrole = "sensitive"\ntype = "numeric"\nrange = [0, 9999]\n'
    )
    out = tmp_path / "out.csv"
    done = run(
        "sdc", "apply", ward, "--schema", schema, *steps("additive_noise:cost"), "-o", out, "--keep-order", "--json"
    )
    assert done.code == 0, done.err
    assert done.json["masked"] == ["cost"]
    assert (pd.read_csv(out)["cost"] != pd.read_csv(ward)["cost"]).all()
    manifest = json.loads(Path(f"{out}.manifest.json").read_text())
    assert {"name": "cost", "role": "quasi_identifying", "type": "numeric"} in manifest["columns"]
    assert any("Not quasi-identifying in the schema" in note for note in manifest["provenance"]["notes"])
    assert run("check", out, "--schema", schema).code == 0


def test_a_claim_of_one_step_is_not_the_chain_s(apply: Run) -> None:
    done = apply(*steps("semantic_recoding:k=3"))
    assert done.code == 0, done.err
    assert "promises nothing by itself" in done.out
    assert "semantic_recoding" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "at least one --step"),
        (["--undo"], "--undo needs --from"),
        (steps("pran:sex"), "Did you mean 'pram'"),
        (steps("pram:ward"), "no column 'ward'"),
        (steps("pram:diagnosis"), "is the target"),
        (steps("pram:age"), "It cannot change: age"),
        (steps("pram:sex,keep=2"), "'keep' parameter"),
        (["--from", "nowhere.json"], "does not exist"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    apply: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "out.csv"
    done = apply(*arguments, "-o", out)
    assert done.code == (3 if "no column" in message or "does not exist" in message else 2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not out.exists()


def test_a_manifest_is_held_to_its_data_and_seed(apply: Run, ward: Path, tmp_path: Path) -> None:
    out, manifest = tmp_path / "out.csv", tmp_path / "out.csv.manifest.json"
    assert apply(*steps(*CHAIN), "-o", out).code == 0
    assert "--seed cannot be changed" in apply("--from", manifest, "--undo", "--seed", "1").err
    lines = ward.read_text().splitlines(keepends=True)
    ward.write_text("".join(lines[:-1]))
    assert "not the one the manifest describes" in apply("--from", manifest, "--undo").err
    manifest.write_text('{"provenance": {"seed": 1, "parameters": {"k": 3}}}')
    assert "does not describe a pipeline" in apply("--from", manifest).err
    manifest.write_text("{")
    assert "cannot be read" in apply("--from", manifest).err
