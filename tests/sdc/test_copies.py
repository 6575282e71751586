"""Multiple imputation: copies that belong together, and pooled estimates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.sdc.copies import means_and_slopes, pooled_estimates, synthetic_copies
from tests.cli.conftest import Run, run  # noqa: F401  a fixture


def test_pooled_estimates_are_near_the_original_s() -> None:
    table = load("adult").select_rows(np.arange(1500))
    columns = ["age", "hours-per-week"]
    copies = [
        release.to_frame() for release in synthetic_copies(table, columns, given="sex,education", copies=6, seed=1)
    ]
    assert not any(copies[0][name].equals(copies[1][name]) for name in columns)
    analysis = means_and_slopes(columns)
    before, found = analysis(table.frame), pooled_estimates(copies, analysis)
    assert set(found) == set(before)
    for name, one in found.items():
        assert abs(one.estimate - before[name].value) < 4 * one.variance**0.5
        assert one.variance > 0
    wider = pooled_estimates(copies, analysis, "rubin")
    assert all(wider[name].variance > one.variance for name, one in found.items())
    with pytest.raises(ConfigError, match="at least 2 copies"):
        synthetic_copies(table, columns, copies=1)


def test_the_command_writes_every_copy(run: Run, tmp_path: Path) -> None:  # noqa: F811
    rng = np.random.default_rng(0)
    file = tmp_path / "people.csv"
    income = rng.normal(3000, 500, 200)
    pd.DataFrame({"income": income, "tax": 0.3 * income + rng.normal(0, 50, 200)}).to_csv(file, index=False)
    out, schema = tmp_path / "out.csv", tmp_path / "people.toml"
    number = 'role = "quasi_identifying"\ntype = "numeric"\nrange = [-9e9, 9e9]\n'
    schema.write_text(f'name = "people"\n[attributes.income]\n{number}[attributes.tax]\n{number}')
    done = run(
        "sdc",
        "impute",
        file,
        "--schema",
        schema,
        "--columns",
        "tax",
        "--given",
        "income",
        "--copies",
        "3",
        "-o",
        out,
        "--json",
    )
    assert done.code == 0, done.err
    assert [Path(path).name for path in done.json["written"]] == ["out_1.csv", "out_2.csv", "out_3.csv"]
    assert all(Path(f"{path}.manifest.json").exists() for path in done.json["written"])
    mean = done.json["estimates"]["mean of tax"]
    assert mean["pooled"] == pytest.approx(mean["original"], abs=4 * mean["deviation"])
    page = tmp_path / "page.html"
    report = ("report", "--privacy", tmp_path / "out_2.csv", "--original", file, "--no-attacks")
    shown = run(*report, "--json").json["pooled"]
    # a report of one copy pools all that lie beside it; their rows are in random order
    assert list(shown["estimates"]) == list(done.json["estimates"])
    assert shown["estimates"]["mean of tax"] == pytest.approx(mean, rel=1e-9)
    assert mean["deviation_rubin"] > mean["deviation"]
    assert run(*report, "-o", page).code == 0
    assert "Estimates pooled over 3 copies" in page.read_text()
    (tmp_path / "out_3.csv").unlink()
    assert run(*report, "--json").json["pooled"] == {"copies": 3, "found": 2, "estimates": {}}
    assert run(*report, "-o", page, "--force").code == 0
    assert "2 of 3 copies" in page.read_text()
    (tmp_path / "out_1.csv").write_text((tmp_path / "out_1.csv").read_text() + "\n")
    assert run(*report, "--json").json["pooled"]["found"] == 1, "a file that was changed is no copy"
    again = run("sdc", "impute", file, "--schema", schema, "--columns", "tax", "--copies", "3", "-o", out)
    assert "exists" in again.err
