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
    out = tmp_path / "out.csv"
    done = run(
        "sdc",
        "impute",
        file,
        "--qi",
        "all",
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
    again = run("sdc", "impute", file, "--qi", "all", "--columns", "tax", "--copies", "3", "-o", out)
    assert "exists" in again.err
