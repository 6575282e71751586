"""The commands end to end: a CSV in, a verified release and its report out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.schema import Schema
from fedanon.federated.wire import decode_settings
from fedanon.joint import JOINT_METHODS
from fedanon.learning.checkpoints import Checkpoints
from fedanon.sdc.methods.base import Perturbative
from tests.cli.conftest import Run

REQUIRED = [
    "method",
    "k",
    "n",
    "classes",
    "k_reached",
    "suppressed",
    "ncp",
    "ncp_published",
    "linkage_expected",
    "linkage_first",
    "truthfulness",
    "il",
    "seconds",
]


def test_anonymize_check_round_trip(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "released.csv"
    made = run("anonymize", ward, "--schema", schema, "--method", "mondrian", "--k", "4", "-o", out, "--json")
    assert made.code == 0, made.err
    assert set(REQUIRED) <= set(made.json)
    assert made.json["k_reached"] >= 4
    released = pd.read_csv(out, dtype=str)
    assert list(released.columns) == ["age", "sex", "unit", "diagnosis"]
    assert released.groupby(["age", "sex", "unit"]).size().min() >= 4
    assert (released["diagnosis"] == "'=cmd").sum() == 1, "formula cells are disarmed"
    manifest = json.loads((tmp_path / "released.csv.manifest.json").read_text())
    assert manifest["claim"] == {"model": "k-anonymity", "k": 4}
    checked = run("check", out, "--schema", schema, "--original", ward, "--json")
    assert checked.code == 0, checked.err
    for name in ("classes", "k_reached", "ncp", "truthfulness", "linkage_expected"):
        assert checked.json[name] == pytest.approx(made.json[name])


def test_same_seed_same_bytes(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "a.csv", tmp_path / "b.csv"]
    how = ["--method", "cb", "--k", "3", "--seed", "7", "--keep-order"]
    for out in outs:
        assert run("anonymize", ward, "--schema", schema, *how, "-o", out).code == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()
    manifests = [Path(f"{out}.manifest.json").read_bytes() for out in outs]
    assert manifests[0] == manifests[1]


def test_check_refuses_a_release_that_was_changed(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "released.csv"
    assert run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out).code == 0
    lines = out.read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace("F,", "M,", 1) if "F," in lines[1] else lines[1].replace("M,", "F,", 1)
    out.write_text("".join(lines))
    changed = run("check", out, "--schema", schema)
    assert changed.code == 4
    assert "SHA-256" in changed.err
    Path(f"{out}.manifest.json").unlink()
    assert run("check", out, "--schema", schema, "--k", "41").code == 4


def test_check_counts_a_file_that_is_not_k_anonymous(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    pd.read_csv(ward, dtype=str).drop(columns="patient").to_csv(raw, index=False)
    assert run("check", raw, "--schema", schema).code == 0
    refused = run("check", raw, "--schema", schema, "--k", "3")
    assert refused.code == 4
    assert "does not keep 3-anonymity" in refused.err


def test_compare_lists_all_methods_and_draws(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    plot = tmp_path / "plot.png"
    done = run("compare", ward, "--schema", schema, "--methods", "all", "--k", "2,4", "--plot", plot, "--json")
    assert done.code == 0, done.err
    seen = {result["method"] for result in done.json["results"]} | {f["method"] for f in done.json["failures"]}
    assert seen == {name for name, method in ANONYMIZERS.items() if not issubclass(method, Perturbative)}
    numeric_only = [name for name, method in ANONYMIZERS.items() if method.numeric_only]
    assert [f["method"] for f in done.json["failures"]] == numeric_only
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_compare_runs_a_method_that_changes_values_where_it_is_named(run: Run, ward: Path, schema: Path) -> None:
    done = run("compare", ward, "--schema", schema, "--methods", "mondrian,additive_noise", "--k", "3", "--json")
    assert done.code == 0, done.err
    assert [(result["method"], result["k"]) for result in done.json["results"]] == [
        ("mondrian", 3),
        ("additive_noise", None),
    ]


def test_a_program_that_waits_can_read_the_progress(
    run: Run, ward: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "progress.jsonl"
    monkeypatch.setenv("FEDANON_PROGRESS", str(told))
    assert run("compare", ward, "--schema", schema, "--methods", "mondrian,oka", "--k", "2,3").code == 0
    lines = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    assert [line["share"] for line in lines] == [0.0, 0.25, 0.5, 0.75]
    assert lines[0]["text"] == "mondrian k=2"


def test_compare_prints_a_table(run: Run, ward: Path, schema: Path) -> None:
    done = run("compare", ward, "--schema", schema, "--methods", "mondrian,das", "--k", "3")
    assert done.code == 0
    assert "mondrian" in done.out
    assert "NCP" in done.out


def test_numeric_file_without_schema(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("a,b,c\n" + "".join(f"{i % 5},{i * 1.5},{i}\n" for i in range(30)))
    done = run("anonymize", path, "--qi", "all", "--method", "mdav", "--k", "3", "--json")
    assert done.code == 0, done.err
    assert done.json["k_reached"] >= 3
    undecided = run("anonymize", path, "--qi", "a,b", "--method", "mdav", "--k", "3", "-o", tmp_path / "out.csv")
    assert undecided.code == 3
    assert "The role of 1 columns is undecided, so nothing is published: c." in undecided.err
    assert not (tmp_path / "out.csv").exists()


def test_a_simulation_says_how_many_nodes_it_has(run: Run, tmp_path: Path) -> None:
    command = ("simulate", "--dataset", "randhie", "--partition", "by:site", "--method", "identity", "--rounds", "1")
    assert "lr, 6 nodes, 1 rounds" in " ".join(run(*command).out.split())
    found = run(*command, "--json", "--resume", tmp_path)
    assert found.json["settings"]["nodes"] == len(found.json["facts"]) == 6
    assert Checkpoints(tmp_path).last(decode_settings(found.json["settings"])) is not None


def test_methods_lists_every_parameter(run: Run) -> None:
    found = {entry["name"]: entry for entry in run("methods", "--json").json}
    assert set(found) == {*ANONYMIZERS, *JOINT_METHODS}
    assert {p["name"] for p in found["gfkmc"]["parameters"]} >= {"k", "profile", "publish"}
    assert (found["gfkmc"]["group"], found["egadp"]["group"]) == ("grouping", "perturbative")
    printed = run("methods")
    assert printed.code == 0
    assert printed.out.index("gfkmc") < printed.out.index("Perturbative methods") < printed.out.index("egadp")


def test_data_list(run: Run) -> None:
    names = {entry["name"] for entry in run("data", "list", "--json").json}
    assert {"adult", "randhie", "nhanes"} <= names
    assert run("data", "list").code == 0


def test_schema_infer_and_check(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    proposal = tmp_path / "proposal.toml"
    assert run("schema", "infer", ward, "-o", proposal).code == 0
    assert Schema.read(proposal).person_id == "patient"
    assert run("schema", "check", proposal, ward).code == (3 if Schema.read(proposal).undecided else 0)
    again = run("schema", "infer", ward, "-o", proposal)
    assert again.code == 2
    assert "--force replaces it" in again.err
    assert run("schema", "check", schema, ward, "--json").json["warnings"] is not None


def test_schema_check_says_what_is_left_to_decide(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{i // 2},{20 + i % 50},CANARY{i}@example.org,{i % 3}\n" for i in range(60))
    file, schema = tmp_path / "t.csv", tmp_path / "t.toml"
    file.write_text(f"patient,age,contact,zz\n{rows}")
    people = 'person_id = "patient"\n[attributes.patient]\nrole = "identifying"\n'
    age = '[attributes.age]\nrole = "quasi_identifying"\ntype = "numeric"\nrange = [0, 110]\n'
    contact, decided = '[attributes.contact]\nrole = "{}"\n', '[attributes.zz]\nrole = "{}"\n'
    schema.write_text(people + age + contact.format("sensitive") + decided.format("undecided"))
    done = run("schema", "check", schema, file)
    assert done.code == 3
    assert "Undecided, so that nothing is published: zz." in done.out
    assert "look like identifiers or quasi-identifiers: contact." in done.out
    assert "fits the schema" not in done.out
    assert "CANARY" not in done.out
    found = run("schema", "check", schema, file, "--json")
    assert found.code == 3
    assert found.json["undecided"] == ["zz"]
    assert [(s["column"], s["looks_like"], s["kind"]) for s in found.json["suspected"]] == [
        ("contact", "identifying", "F")
    ]
    schema.write_text(people + age + contact.format("sensitive") + decided.format("insensitive"))
    done = run("schema", "check", schema, file)
    assert done.code == 0
    assert "fits the schema" not in done.out
    schema.write_text(people + age + contact.format("identifying") + decided.format("insensitive"))
    done = run("schema", "check", schema, file)
    assert done.code == 0
    assert "The file fits the schema." in done.out


def test_help_is_light_and_import_loads_nothing_heavy() -> None:
    code = (
        "import sys, fedanon, fedanon.cli.app;"
        "heavy = {'numba', 'torch', 'xgboost', 'flwr', 'pandas', 'numpy', 'matplotlib'} & set(sys.modules);"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_registries_load_without_compiling() -> None:
    code = (
        "import sys; from fedanon.anonymizers import ANONYMIZERS; from fedanon.metrics import METRICS;"
        "ANONYMIZERS.names(); METRICS.names(); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_real_process_exits_with_3_and_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedanon.cli", "anonymize", str(tmp_path / "none.csv"), "--qi", "all", "--k", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
