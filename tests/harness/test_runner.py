"""Runs: every task, failures alone, dead workers, and a run that is killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from fedanon.errors import DataError, InfeasibleError
from fedanon.harness.cells import CellStore, StoredCell
from fedanon.harness.experiment import Experiment, parse_experiment, read_experiment
from fedanon.harness.result_set import read_results
from fedanon.harness.runner import run
from fedanon.harness.tasks.base import CellResult, Task
from fedanon.harness.workers import over_processes

SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"
COMMAND = [sys.executable, "-m", "fedanon.cli", "experiment", "run"]
TABLES = ("results.csv", "results.parquet", "curves.parquet")


def test_smoke(tmp_path: Path) -> None:
    experiment = read_experiment(SMOKE)
    first = run(experiment, tmp_path, workers=1)
    assert (first.computed, first.kept, first.failures) == (first.total, 0, {})
    found = read_results(tmp_path)
    assert found.manifest["finished"] == first.total
    assert set(found.results["grid"]) == {"releases", "federations", "one place", "elbow"}
    reached = found.results[(found.results["measure"] == "k_reached") & found.results["k"].notna()]
    assert (reached["value"] >= reached["k"]).all()
    assert found.curves.groupby("cell")["round"].max().eq(4).all()
    before = [(tmp_path / name).read_bytes() for name in TABLES]
    again = run(experiment, tmp_path, workers=1)
    assert (again.computed, again.kept) == (0, first.total)
    assert [(tmp_path / name).read_bytes() for name in TABLES] == before


def experiment(methods: str, more: str = "") -> Experiment:
    text = f'[[grid]]\ntask = "release"\ndataset = "randhie"\nmethods = {methods}\n{more}'
    return parse_experiment(text, name="test", folder=Path())


def test_a_failure_is_listed_and_the_others_go_on(tmp_path: Path) -> None:
    done = run(experiment('["mdav", "mondrian"]', "k = 5"), tmp_path, workers=1)
    assert done.computed == 1
    (failure,) = read_results(tmp_path).manifest["failures"]
    assert failure["what"].startswith("mdav k=5")
    assert "numeric" in failure["reason"]
    assert list(done.failures.values()) == [failure["reason"]]


@dataclass(frozen=True, kw_only=True)
class Accident(Task):
    """Ends its process, or fails on purpose, or by mistake."""

    kind: str = "fine"

    def run(self) -> CellResult:
        if self.kind == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "infeasible":
            raise InfeasibleError("not on this table")
        if self.kind == "bug":
            raise ValueError("secret cell")
        return CellResult({"value": float(self.seed)})


def test_a_dead_worker_takes_no_other_task_with_it() -> None:
    kinds = ["fine", "dies", "fine", "infeasible", "fine", "bug", "fine"]
    tasks = [(str(i), Accident(kind=kind, seed=i)) for i, kind in enumerate(kinds)]
    done = dict(over_processes(tasks, 2))
    assert sorted(done) == [str(i) for i in range(len(kinds))]
    for key, task in tasks:
        outcome = done[key].result
        assert (outcome is not None) == (task.kind == "fine")
        assert outcome is None or outcome.metrics == {"value": task.seed}
    assert "died" in done["1"].error
    assert done["3"].error == "not on this table"
    assert "ValueError" in done["5"].error
    assert "secret" not in done["5"].error


def test_ray_gives_the_same_results(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra 'simulation' is not installed")
    file = tmp_path / "small.toml"
    file.write_text('[[grid]]\ntask = "release"\ndataset = "randhie"\nmethods = ["mondrian", "mdav"]\nk = [5, 10]\n')
    run(read_experiment(file), tmp_path / "processes", workers=1)
    # in a process of its own: Ray leaves threads and pipes behind
    subprocess.run([*COMMAND, str(file), "-o", str(tmp_path / "ray"), "--engine", "ray"], check=True)
    here, with_ray = (read_results(tmp_path / engine).manifest for engine in ("processes", "ray"))
    assert sorted(f["what"] for f in here["failures"]) == sorted(f["what"] for f in with_ray["failures"])
    assert here["finished"] == with_ray["finished"] == 2
    assert (tmp_path / "processes" / "results.csv").read_bytes() == (tmp_path / "ray" / "results.csv").read_bytes()


def test_a_damaged_cell_is_named(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.write("abc", StoredCell(CellResult({"x": 1.0}, {"y": {1: 2.0}}, ("note",)), 0.1, "code"))
    assert store.read("abc") == StoredCell(CellResult({"x": 1.0}, {"y": {1: 2.0}}, ("note",)), 0.1, "code")
    (tmp_path / "cells" / "abc.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="cell abc is damaged"):
        store.read("abc")


#: a kill lets at most four more cells be finished: a third of the cells is enough for five
KILLED = """
title = "killed"
[[grid]]
task = "release"
dataset = "randhie"
metrics = ["ncp", "linkage_expected"]
k = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
seeds = {seeds}
methods = ["mondrian", "gfkmc", "tdg"]
"""


def n_finished(folder: Path) -> int:
    return len(list((folder / "cells").glob("*.json")))


def kill_after(command: list[str], folder: Path, more_cells: int, seconds: float) -> None:
    wanted = n_finished(folder) + more_cells
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while n_finished(folder) < wanted and process.poll() is None:
        time.sleep(0.005)
    time.sleep(seconds)
    process.kill()
    process.wait()


@pytest.mark.parametrize(("kills", "seeds"), [(5, 1), pytest.param(20, 3, marks=pytest.mark.slow)])
def test_a_run_killed_again_and_again_gives_the_same_bytes(tmp_path: Path, kills: int, seeds: int) -> None:
    file = tmp_path / "killed.toml"
    file.write_text(KILLED.format(seeds=seeds), encoding="utf-8")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [*COMMAND, str(file), "-o"]
    run(read_experiment(file), whole, workers=1)
    moments = random.Random(20)
    for _ in range(kills):
        # some are hit before their first cell, most in the middle of writing
        kill_after([*command, str(killed)], killed, moments.randrange(5), moments.uniform(0, 0.05))
    finished = n_finished(killed)
    assert run(read_experiment(file), killed, workers=1).kept == finished > 0
    for name in ("results.csv", "results.parquet"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
