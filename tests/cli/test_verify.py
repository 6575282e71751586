"""`fedanon verify` and `fedanon audit`: what a manifest says is checked again, and what was done is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from fedanon.data.schema import Schema
from fedanon.io.manifest import Manifest
from tests.cli.conftest import Outcome, Run


@pytest.fixture
def plain(tmp_path: Path, schema: Path) -> Path:
    """The ward without persons: every row is one."""
    path = tmp_path / "plain.toml"
    path.write_text(schema.read_text().replace('person_id = "patient"\n', ""), encoding="utf-8")
    return path


def varied(ward: Path) -> Path:
    """Several diagnoses, so that classes can be diverse, and a missing unit."""
    frame = pd.read_csv(ward, dtype=str)
    frame["diagnosis"] = [("flu", "asthma", "angina")[i % 3] for i in range(len(frame))]
    frame.loc[5, "unit"] = "?"
    frame.to_csv(ward, index=False)
    return ward


def outcomes(told: Outcome) -> dict[str, str]:
    return {check["name"]: check["outcome"] for check in told.json["checks"]}


def changed(manifest: Path, **values: object) -> None:
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | values), encoding="utf-8")


def test_everything_holds_from_the_manifest_alone(run: Run, ward: Path, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    made = ["--method", "mondrian", "--k", "4", "--require", "l=2:diagnosis", "--missing", "category", "--seed", "3"]
    assert run("anonymize", varied(ward), "--schema", plain, *made, "-o", out).code == 0
    told = run("verify", f"{out}.manifest.json", "--json")
    assert told.code == 0, told.err
    assert told.json["verified"] is True
    assert set(outcomes(told).values()) == {"pass"}
    assert {"4-anonymity", "distinct 2-diversity of 'diagnosis'"} <= set(outcomes(told))
    more = ["--schema", plain, "--original", ward, "--rebuild", "--json"]
    whole = run("verify", out, *more)
    assert whole.code == 0, whole.out
    assert {"schema given", "hash of the data", "truth", "rebuild"} <= set(outcomes(whole))
    assert set(outcomes(whole).values()) == {"pass"}
    assert "is what its manifest says: no check failed." in run("verify", out).out


def test_people_are_left_open_without_the_original(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out).code == 0
    assert outcomes(run("verify", out, "--json"))["4-anonymity"] == "open"
    assert outcomes(run("verify", out, "--original", ward, "--json"))["4-anonymity"] == "pass"


def test_rows_of_one_person_do_not_count_twice(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    half = pd.read_csv(ward, dtype=str)[:20]
    pd.concat([half, half]).to_csv(ward, index=False)
    assert run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out).code == 0
    smallest = pd.read_csv(out, dtype=str).groupby(["age", "sex", "unit"]).size().min()
    # a claim that rows would keep and people do not
    changed(Path(f"{out}.manifest.json"), claim={"model": "k-anonymity", "k": int(smallest)})
    told = run("verify", out, "--original", ward, "--json")
    assert smallest >= 8
    assert told.code == 4
    assert outcomes(told)[f"{smallest}-anonymity"] == "fail"


def test_a_changed_file_fails(run: Run, ward: Path, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("anonymize", ward, "--schema", plain, "--k", "4", "-o", out).code == 0
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:-1]))
    told = run("verify", out, "--json")
    assert told.code == 4
    assert (outcomes(told)["hash of the file"], outcomes(told)["sizes"]) == ("fail", "fail")
    assert "is NOT what its manifest says" in run("verify", out).out
    out.write_text("not,a,release\n1,2,3\n")
    broken = run("verify", out, "--json")
    assert broken.code == 4
    assert outcomes(broken)["file"] == outcomes(broken)["claim"] == "fail"


@pytest.mark.parametrize(
    ("values", "failed"),
    [
        ({"claim": {"model": "k-anonymity", "k": 41}}, "41-anonymity"),
        ({"rows": 3}, "sizes"),
        ({"schema_sha256": "0" * 64}, "schema of the manifest"),
        ({"schema": "name = 'x'\nattributes = 3"}, "schema"),
        ({"claim": {"model": "combined", "k": 2, "all_of": [{"model": "nothing known"}]}}, "claim"),
        ({"claim": {"k": "many"}}, "claim"),
    ],
)
def test_a_changed_manifest_fails(
    run: Run, ward: Path, plain: Path, tmp_path: Path, values: dict[str, object], failed: str
) -> None:
    out = tmp_path / "out.csv"
    assert run("anonymize", ward, "--schema", plain, "--k", "4", "-o", out).code == 0
    changed(Path(f"{out}.manifest.json"), **values)
    told = run("verify", out, "--json")
    assert told.code == 4, told.out
    assert outcomes(told)[failed] == "fail"


def test_another_original_and_another_seed_fail(run: Run, ward: Path, plain: Path, tmp_path: Path) -> None:
    out, manifest = tmp_path / "out.csv", tmp_path / "out.csv.manifest.json"
    assert run("anonymize", ward, "--schema", plain, "--method", "cb", "--k", "3", "--seed", "7", "-o", out).code == 0
    provenance = json.loads(manifest.read_text())["provenance"]
    changed(manifest, provenance=provenance | {"seed": 8})
    told = run("verify", out, "--original", ward, "--rebuild", "--json")
    assert (told.code, outcomes(told)["rebuild"]) == (4, "fail")
    changed(manifest, provenance=provenance)
    assert outcomes(run("verify", out, "--original", ward, "--rebuild", "--json"))["rebuild"] == "pass"
    frame = pd.read_csv(ward, dtype=str)
    frame["age"] = frame["age"].to_numpy()[::-1]
    frame.to_csv(ward, index=False)
    told = run("verify", out, "--original", ward, "--json")
    assert (outcomes(told)["hash of the data"], outcomes(told)["truth"]) == ("fail", "fail")


def test_claims_a_file_cannot_show_are_left_open(run: Run, ward: Path, plain: Path, tmp_path: Path) -> None:
    out, manifest = tmp_path / "out.csv", tmp_path / "out.csv.manifest.json"
    assert run("anonymize", ward, "--schema", plain, "--k", "4", "-o", out).code == 0
    changed(manifest, claim={"model": "k-anonymity", "k": 99, "scope": "federation", "k_local": 3, "count": None})
    told = run("verify", out)
    assert told.code == 0
    assert "open  99-anonymity over the federation: not checked" in told.out
    assert "someone who knows the node" in told.out
    assert "pass  3-anonymity" in told.out
    checked = run("check", out, "--schema", plain)
    assert checked.code == 0, checked.err
    assert "open  99-anonymity over the federation: not checked" in checked.out
    assert "pass  3-anonymity" in checked.out
    assert list(run("check", out, "--schema", plain, "--json").json["open"]) == ["99-anonymity over the federation"]
    changed(manifest, claim={"model": "k-anonymity", "k": 99, "scope": "federation", "k_local": 50, "count": None})
    assert "does not keep 50-anonymity" in run("check", out, "--schema", plain).err
    changed(manifest, claim={"model": "differential privacy", "epsilon": 1.0, "delta": 0.0})
    assert outcomes(run("verify", out, "--json"))["differential privacy"] == "open"
    changed(manifest, claim=None)
    assert outcomes(run("verify", out, "--json"))["claim"] == "open"


def test_parquet_and_a_chain_are_rebuilt_too(run: Run, ward: Path, plain: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "ward.parquet", tmp_path / "out.parquet"
    pd.read_csv(varied(ward), dtype=str).to_parquet(source)
    made = ["--k", "4", "--require", "l=2:diagnosis", "--missing", "category"]
    assert run("anonymize", source, "--schema", plain, *made, "-o", out).code == 0
    told = run("verify", out, "--original", source, "--rebuild", "--json")
    assert told.code == 0, told.out
    assert outcomes(told)["rebuild"] == "pass"
    chain = tmp_path / "chain.csv"
    steps = ["--step", "pram:sex,keep=0.8", "--missing", "category"]
    done = run("sdc", "apply", ward, "--schema", plain, *steps, "-o", chain)
    assert done.code == 0, done.err
    told = run("verify", chain, "--original", ward, "--rebuild", "--json")
    assert told.code == 0, told.out
    assert (outcomes(told)["rebuild"], outcomes(told)["truth"]) == ("pass", "open")


def test_ranges_read_off_the_data_stay_out_of_the_manifest(run: Run, ward: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    numbers = tmp_path / "numbers.csv"
    pd.read_csv(ward)[["age"]].assign(height=range(150, 190)).to_csv(numbers, index=False)
    assert run("anonymize", numbers, "--qi", "all", "--k", "4", "-o", out).code == 0
    assert "schema" not in json.loads(Path(f"{out}.manifest.json").read_text())
    told = run("verify", out, "--json")
    assert told.code == 4
    assert any("--schema" in check["text"] for check in told.json["checks"])


def test_the_manifest_holds_the_schema_in_its_order(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out).code == 0
    manifest = Manifest.beside(out)
    assert manifest is not None
    assert manifest.schema == Schema.read(schema)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"claim": null}', "[" * 100_000])
def test_bad_manifests_are_one_line(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv.manifest.json"
    path.write_text(text)
    told = run("verify", path)
    assert (told.code, told.err) == (3, "error: The manifest x.csv.manifest.json cannot be read.\n")


def test_what_is_missing_is_said(run: Run, ward: Path, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert run("anonymize", ward, "--schema", plain, "--k", "4", "-o", out).code == 0
    assert "--original" in run("verify", out, "--rebuild").err
    moved = out.rename(tmp_path / "moved.csv")
    assert run("verify", f"{out}.manifest.json").code == 4
    assert run("verify", f"{out}.manifest.json", "--release", moved).code == 0


# ---- the audit log ------------------------------------------------------------------------------


def test_commands_leave_a_chain_without_values(
    run: Run, ward: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, log = tmp_path / "out.csv", tmp_path / "log.jsonl"
    monkeypatch.setenv("FEDANON_AUDIT", str(log))
    assert run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out).code == 0
    assert run("check", out, "--schema", schema, "--original", ward).code == 0
    head = run("audit", "head", log).out.strip()
    assert run("check", out, "--schema", schema, "--k", "41").code == 4
    assert run("verify", out, "--original", ward).code == 0
    assert run("report", "--privacy", out, "-o", tmp_path / "r.html").code == 0
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(r["event"], r["facts"]["outcome"]) for r in records] == [
        ("anonymize", "done"),
        ("check", "done"),
        ("check", "refused"),
        ("verify", "done"),
        ("report", "done"),
    ]
    first = records[0]["facts"]
    assert (first["method"], first["seed"], first["claim"]["k"], first["output"]) == ("mondrian", 0, 4, "out.csv")
    assert first["output_sha256"] == json.loads(Path(f"{out}.manifest.json").read_text())["csv_sha256"]
    assert not any(word in log.read_text() for word in ("P001", "cmd", "flu", "oncology"))
    sound = run("audit", "verify", log, "--head", head, "--json")
    assert (sound.code, sound.json["lines"], sound.json["lines_since"]) == (0, 5, 3)


def test_tampering_is_named_by_its_line(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for seed in range(4):
        assert run("anonymize", ward, "--schema", schema, "--k", "4", "--seed", str(seed), "--audit", log).code == 0
    lines = log.read_text().splitlines(keepends=True)
    head = run("audit", "head", log).out.strip()
    assert "4 lines follow one from another" in run("audit", "verify", log).out
    log.write_text("".join(lines[:2] + lines[3:]))
    told = run("audit", "verify", log)
    assert told.code == 4
    assert "Line 3 of log.jsonl breaks the chain" in told.err
    assert run("audit", "head", log).code == 4
    log.write_text("".join(lines[:3]))
    assert run("audit", "verify", log).code == 0, "a cut end is a sound chain"
    cut = run("audit", "verify", log, "--head", head)
    assert cut.code == 4
    assert "the end is missing" in cut.err


def test_a_log_that_cannot_be_written_stops_the_command_first(
    run: Run, ward: Path, schema: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    refused = run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out, "--audit", tmp_path / "no" / "log")
    assert refused.code == 3
    assert "audit log" in refused.err
    assert not out.exists()
