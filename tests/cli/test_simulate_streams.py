"""`fedanon simulate --stream`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.cli.conftest import Run
from tests.streams.test_learning import publish


def test_the_command_prints_rounds_and_draws_them(run: Run, tmp_path: Path) -> None:
    gateways = [publish(tmp_path / f"ward{seed}", seed, 800) for seed in range(2)]
    streams = [part for windows in gateways for part in ("--stream", windows)]
    schema = ("--schema", gateways[0].parent / "ward.toml", "--set", "windows=3")
    shown = run("simulate", *streams, *schema, "--rounds", 4, "--plot", tmp_path / "days.png")
    assert shown.code == 0, shown.err
    assert "PSI" in shown.out
    assert (tmp_path / "days.png").stat().st_size > 5000
    found = json.loads(run("simulate", *streams, *schema, "--every", 120, "--json").out)
    assert {node["name"] for node in found["nodes"]} == {"ward0", "ward1"}
    steps = np.diff([one["moment"] for one in found["rounds"]])
    assert np.allclose(steps, 120)
    wrong = run("simulate", *streams, "--method", "mondrian", *schema)
    assert wrong.code == 2
    assert "--method" in wrong.err
    schema_file = gateways[0].parent / "ward.toml"
    lines = schema_file.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "no_target.toml").write_text("".join(x for x in lines if not x.startswith("target")), encoding="utf-8")
    without = run("simulate", *streams, "--schema", tmp_path / "no_target.toml")
    assert without.code == 2
    assert "names no target column" in without.err
