"""Ctrl-C during `fedanon experiment run`: real processes, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedanon.harness.experiment import read_experiment
from fedanon.harness.result_set import read_results
from fedanon.harness.runner import run

# a shell that starts jobs in the background has them ignore interrupts
PROGRAM = """
import signal
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from fedanon.cli.__main__ import main
    main()
"""

#: the first cells take no time; the others would take an hour, and start processes of their own
HOUR = """
[[grid]]
name = "instant"
task = "release"
dataset = "randhie"
metrics = ["ncp"]
k = [3, 4]
methods = ["mondrian"]
[[grid]]
name = "an hour"
task = "release"
dataset = "randhie"
metrics = ["ncp"]
k = [3, 4, 5]
methods = [{ name = "blocks", set = { seconds = 3600, block_size = 2000, workers = 2 } }]
"""
INSTANT, ALL = 2, 5

MANY = """
[[grid]]
task = "release"
dataset = "randhie"
metrics = ["ncp", "linkage_expected"]
k = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
seeds = 2
methods = ["mondrian"]
"""

Started = subprocess.Popen[str]


def command(file: Path, output: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "experiment", "run", str(file), "-o", str(output), *more]


@contextmanager
def started(*arguments: Any) -> Iterator[Started]:
    """A session of its own, as a terminal's; whatever is left of it is killed."""
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command(*arguments), start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            for pid in session(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def session(leader: int) -> list[int]:
    """The living processes of a session."""
    living = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _parent, _group, its_session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
            living += [int(path.name)] if int(its_session) == leader and state not in "ZX" else []
    return living


def wait_until(reached: Callable[[], bool], process: Started, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def n_finished(folder: Path) -> int:
    return len(list((folder / "cells").glob("*.json")))


def assert_tables_hold(folder: Path, cells: int) -> None:
    """Tables, manifest and finished cells tell the same, and nothing half written lies beside them."""
    found = read_results(folder)
    assert found.manifest["finished"] == found.results["cell"].nunique() == n_finished(folder) == cells
    assert len(pd.read_parquet(folder / "results.parquet")) == len(found.results)
    assert list(folder.rglob("*.tmp")) == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hour.toml"
    path.write_text(HOUR, encoding="utf-8")
    return path


#: Ctrl-C goes to all processes of the terminal, an order to end to the one
WAYS = [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)]


@pytest.mark.parametrize(("send", "number"), WAYS, ids=["SIGINT", "SIGTERM"])
def test_running_cells_end_at_once_and_finished_ones_are_written(
    file: Path, tmp_path: Path, send: Callable[[int, int], None], number: int
) -> None:
    folder = tmp_path / "out"
    with started(file, folder, "--workers", "2", "--json") as process:
        wait_until(lambda: n_finished(folder) == INSTANT, process)
        # itself, the tracker of semaphores, two workers, and a process of theirs
        wait_until(lambda: len(session(process.pid)) > 4, process)
        send(process.pid, number)
        out, err = process.communicate(timeout=30)
        time.sleep(0.5)  # those killed last may still be going
        assert session(process.pid) == []
    assert process.returncode == 130
    told = f"Interrupted: {INSTANT} of {ALL} cells are finished and in the tables of {folder}; the same command goes on"
    assert err.count(told) == 1
    assert "Traceback" not in err
    assert {name: json.loads(out)[name] for name in ("computed", "interrupted")} == {
        "computed": INSTANT,
        "interrupted": True,
    }
    assert_tables_hold(folder, INSTANT)
    assert read_results(folder).manifest["failures"] == [], "a cell that was ended did not fail"


@pytest.mark.slow
def test_ray_ends_too(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra 'simulation' is not installed")
    folder = tmp_path / "out"
    with started(file, folder, "--workers", "2", "--engine", "ray") as process:
        wait_until(lambda: n_finished(folder) == INSTANT, process, seconds=100)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.count("Interrupted: 2 of 5"), "Traceback" in err) == (130, 1, False)
    assert_tables_hold(folder, INSTANT)


def test_more_interrupts_spoil_nothing_and_the_same_command_goes_on(tmp_path: Path) -> None:
    file, whole, folder = tmp_path / "many.toml", tmp_path / "whole", tmp_path / "out"
    file.write_text(MANY, encoding="utf-8")
    run(read_experiment(file), whole, workers=1)
    with started(file, folder, "--workers", "1") as process:
        wait_until(lambda: n_finished(folder) >= 5, process)
        while process.poll() is None:  # also while the tables are written, and on the way out
            os.kill(process.pid, signal.SIGINT)
            time.sleep(0.002)
        _, err = process.communicate()
    assert (process.returncode, err.count("Interrupted"), "Traceback" in err) == (130, 1, False)
    finished = n_finished(folder)
    assert 5 <= finished < n_finished(whole)
    assert_tables_hold(folder, finished)
    again = subprocess.run(
        command(file, folder, "--workers", "1", "--json"), check=True, capture_output=True, text=True
    )
    assert json.loads(again.stdout)["kept"] == finished
    for name in ("results.csv", "results.parquet"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
