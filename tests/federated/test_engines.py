"""The Ray engine runs the same app to the same scores as the local one."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

COMMAND = [
    "simulate",
    "--dataset",
    "randhie",
    "--partition",
    "by:site",
    "--method",
    "mondrian",
    "--k",
    "5",
    "--rounds",
    "2",
]


def scores(engine: str, model: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "fedanon.cli", *COMMAND, "--model", model, "--engine", engine, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    result: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return result


@pytest.mark.parametrize("model", [pytest.param("lr", marks=pytest.mark.slow), "xgb"])
def test_ray_gives_the_scores_of_the_local_engine(model: str) -> None:
    local, ray = scores("local", model), scores("ray", model)
    assert len(local["rounds"]) == 2
    for name in ("accuracy", "auc_pooled", "log_loss", "ncp", "k_reached"):
        assert ray[name] == pytest.approx(local[name], abs=1e-9)
