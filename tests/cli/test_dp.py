"""Differential privacy on the command line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.cli.conftest import Run


def test_a_release_with_noise_is_made_and_checked(run: Run, tmp_path: Path) -> None:
    schema, data, out = tmp_path / "s.toml", tmp_path / "d.csv", tmp_path / "o.csv"
    quasi = 'role = "quasi_identifying"\ntype = "numeric"\nrange = [0, 60]\n'
    schema.write_text(
        f'[attributes.a]\n{quasi}[attributes.b]\n{quasi}[attributes.c]\nrole = "insensitive"\ntype = "text"\n'
    )
    data.write_text("a,b,c\n" + "".join(f"{i},{i * 7 % 50},secret\n" for i in range(60)))
    made = run("anonymize", data, "--schema", schema, "--method", "dp_microaggregation", "--k", "30", "-o", out)
    assert made.code == 0, made.err
    assert "differential" in made.out
    assert "Left empty" in made.out
    assert "secret" not in out.read_text()
    checked = run("check", out, "--schema", schema)
    assert checked.code == 0, checked.err
    assert "epsilon 1" in checked.out


def test_a_simulation_says_what_it_spent(run: Run) -> None:
    common = ("simulate", "--dataset", "randhie", "--partition", "by:site", "--rounds", "2", "--dp-epsilon", "2")
    done = run(*common, "--method", "identity", "--dp-delta", "1e-6", "--dp-clip", "1.5", "--json")
    assert done.code == 0, done.err
    spent = done.json["dp"]
    assert spent["mode"] == "record"
    assert (spent["delta"], spent["clip"], spent["promised"]) == (1e-6, 1.5, True)
    assert 1.99 < spent["epsilon_spent"] <= 2.0 * (1 + 1e-9)
    shown = run(*common, "--method", "identity", "--dp-randomness", "seeded")
    assert "epsilon 2 spent" in " ".join(shown.out.split())
    assert "nothing is promised" in " ".join(shown.out.split())


def test_trees_are_refused(run: Run) -> None:
    refused = run("simulate", "--method", "identity", "--model", "xgb", "--dp-epsilon", "1", "--dp-mode", "central")
    assert refused.code == 2
    assert "needs a model that is averaged" in " ".join(refused.err.split())


def test_parquet_columns_do_not_pass_by_a_release_with_noise(run: Run, tmp_path: Path) -> None:
    schema, data, out = tmp_path / "s.toml", tmp_path / "d.parquet", tmp_path / "o.parquet"
    schema.write_text(
        '[attributes.a]\nrole = "quasi_identifying"\ntype = "numeric"\nrange = [0, 60]\n'
        '[attributes.c]\nrole = "insensitive"\ntype = "text"\n'
    )
    pd.DataFrame({"a": range(60), "c": "secret"}).to_parquet(data)
    refused = run("anonymize", data, "--schema", schema, "--method", "dp_microaggregation", "--k", "30", "-o", out)
    assert refused.code == 2
    assert "use a CSV file" in " ".join(refused.err.split())
    assert not out.exists()
