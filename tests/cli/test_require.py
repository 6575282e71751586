"""`--require`: what classes must keep beyond k, claimed, written into the manifest and checked on the file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import Run

SCHEMA = """
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
[attributes.illness]
role = "sensitive"
[attributes.cost]
role = "sensitive"
type = "numeric"
range = [0, 1000]
"""
MODELS = "l=2:illness,t=0.4:illness,t=0.3:cost"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """Forty patients; illness goes with age."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    ages = range(20, 60)
    frame = pd.DataFrame({"age": ages, "illness": ["flu" if a < 40 else "gout" for a in ages]})
    frame.loc[[3, 9, 17, 25, 33], "illness"] = "ulcer"
    frame["cost"] = [100 * (a % 7) for a in ages]
    frame.to_csv(tmp_path / "clinic.csv", index=False)
    return tmp_path


def test_required_models_are_claimed_written_and_checked(run: Run, clinic: Path) -> None:
    out, schema = clinic / "out.csv", clinic / "schema.toml"
    made = run("anonymize", clinic / "clinic.csv", "--schema", schema, "--require", f"k=4,{MODELS}", "-o", out)
    assert made.code == 0, made.err
    assert "at least 2 different values of 'illness'" in " ".join(made.out.split())
    claim = json.loads((clinic / "out.csv.manifest.json").read_text())["claim"]
    assert claim["k"] == 4
    assert [entry["model"] for entry in claim["all_of"]] == [
        "k-anonymity", "distinct l-diversity", "t-closeness", "t-closeness"
    ]  # fmt: skip
    checked = run("check", out, "--schema", schema, "--require", f"k=4,{MODELS}")
    assert checked.code == 0, checked.err
    assert "pass  distinct 2-diversity of 'illness': holds for" in checked.out
    assert run("check", out, "--schema", schema, "--require", "k=40").code == 4
    refused = run("check", out, "--schema", schema, "--require", "l=4:illness")
    assert refused.code == 4
    assert "does not keep distinct 4-diversity of 'illness'" in refused.err


def test_the_claim_of_a_manifest_is_judged_on_the_values_in_the_file(run: Run, clinic: Path) -> None:
    out, schema = clinic / "out.csv", clinic / "schema.toml"
    run("anonymize", clinic / "clinic.csv", "--schema", schema, "--require", f"k=4,{MODELS}", "-o", out)
    frame = pd.read_csv(out, dtype=str)
    frame["illness"] = "flu"
    frame.to_csv(out, index=False)
    manifest = clinic / "out.csv.manifest.json"
    document = json.loads(manifest.read_text())
    document["csv_sha256"] = hashlib.sha256(out.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(document))
    refused = run("check", out, "--schema", schema)
    assert refused.code == 4
    assert "does not keep distinct 2-diversity of 'illness'" in refused.err


def test_options_that_disagree_and_methods_that_promise_nothing(run: Run, clinic: Path) -> None:
    start = ("anonymize", clinic / "clinic.csv", "--schema", clinic / "schema.toml")
    assert "--k asks for 5, --require for k=4" in run(*start, "--k", "5", "--require", "k=4").err
    nothing = run(*start, "--method", "identity", "--require", "l=2:illness")
    assert nothing.code == 2
    assert "Identity has no parameter require" in nothing.err
    unknown = run(*start, "--k", "4", "--require", "l=2:blood")
    assert unknown.code == 2
    assert "column 'blood', which the schema does not declare" in unknown.err


def test_what_was_claimed_of_people_is_not_judged_by_rows(run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    made = run("anonymize", ward, "--schema", schema, "--k", "3", "--require", "t=0.5:diagnosis", "-o", out)
    assert made.code == 0, made.err
    blind = run("check", out, "--schema", schema).out
    assert "open  0.5-closeness of 'diagnosis': not checked: people can be counted only with --original" in blind
    whole = run("check", out, "--schema", schema, "--original", ward)
    assert whole.code == 0, whole.err
    assert "pass  0.5-closeness of 'diagnosis'" in whole.out
