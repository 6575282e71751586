"""The Ray engine runs the same app to the same scores as the local one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedanon.federated.wire import decode_settings
from fedanon.learning.checkpoints import Checkpoints
from tests.cli.conftest import Run, run  # noqa: F401  the fixture

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
PRIVATE = ["simulate", "--dataset", "randhie", "--partition", "by:site", "--method", "identity", "--rounds", "2"]


def run_apart(engine: str, *options: str) -> dict[str, Any]:
    """In a process of its own, which Ray leaves threads and pipes behind in."""
    command = [sys.executable, "-m", "fedanon.cli", *options, "--engine", engine, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    result: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return result


@pytest.mark.parametrize("model", [pytest.param("lr", marks=pytest.mark.slow), "xgb"])
def test_ray_gives_the_scores_of_the_local_engine(model: str, run: Run) -> None:  # noqa: F811
    local = run(*COMMAND, "--model", model, "--engine", "local", "--json").json
    ray = run_apart("ray", *COMMAND, "--model", model)
    assert len(local["rounds"]) == 2
    for name in ("accuracy", "auc_pooled", "log_loss", "ncp", "k_reached"):
        assert ray[name] == pytest.approx(local[name], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["record", "local", "central"])
def test_ray_trains_privately_to_the_model_and_the_budget_of_the_local_engine(tmp_path: Path, mode: str) -> None:
    results, models = [], []
    for engine in ("local", "ray"):
        folder = tmp_path / engine
        private = ("--dp-epsilon", "2", "--dp-mode", mode, "--dp-randomness", "seeded", "--resume", str(folder))
        results.append(run_apart(engine, *PRIVATE, *private))
        last = Checkpoints(folder).last(decode_settings(results[-1]["settings"]))
        assert last is not None
        models.append(last.parameters)
    local, ray = results
    assert ray["dp"] == local["dp"]
    assert ray["dp"]["epsilon_spent"] == pytest.approx(2.0, rel=1e-6)
    assert ray["unresponsive"] == ray["rejected"] == []
    for one, other in zip(*models, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_ray_draws_secure_noise_anew_every_time() -> None:
    runs = [run_apart("ray", *PRIVATE, "--dp-epsilon", "2") for _ in range(2)]
    assert runs[0]["dp"] == runs[1]["dp"]
    assert runs[0]["dp"]["promised"]
    assert runs[0]["log_loss"] != runs[1]["log_loss"]
