"""Blocks: disjoint, large enough, anonymized alone, with the same result however many processes work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers.blocks import Blocks
from fedanon.anonymizers.clustering.method import TopDownGreedy
from fedanon.anonymizers.progress import watching
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.io.release_file import read_release
from fedanon.metrics import evaluate
from fedanon.metrics.information_loss import ncp
from fedanon.release.reconstruction import reconstruct
from fedanon.types import IntArray

STOPPED = ("The search was stopped before its budget was used.",)


@pytest.fixture(scope="module")
def adult() -> Table:
    return load("adult").select_rows(np.arange(0, 30000, 10))


@pytest.fixture(scope="module")
def alone(adult: Table) -> IntArray:
    """The classes made by one process, to which others are compared."""
    return Blocks(k=5, block_size=700, iterations=20_000).anonymize(adult, rng=3).groups.labels


def test_every_class_lies_in_one_block(adult: Table) -> None:
    method = Blocks(k=5, method="tdg", block_size=400)
    blocks = method.blocks(adult, np.random.default_rng(0))
    assert len(blocks) > 3
    assert min(map(len, blocks)) >= 400
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(len(adult)))
    block_of = np.empty(len(adult), dtype=int)
    for number, rows in enumerate(blocks):
        block_of[rows] = number
    assert (method.anonymize(adult, rng=0).groups.distinct(block_of) == 1).all()


def test_one_block_is_the_method_itself(adult: Table) -> None:
    whole = Blocks(k=5, method="tdg", block_size=len(adult)).anonymize(adult, rng=0)
    assert ncp(adult, whole) == pytest.approx(ncp(adult, TopDownGreedy(k=5).anonymize(adult, rng=0)), rel=0.1)


def test_processes_change_nothing(adult: Table, alone: IntArray) -> None:
    release = Blocks(k=5, block_size=700, iterations=20_000, workers=2).anonymize(adult, rng=3)
    np.testing.assert_array_equal(release.groups.labels, alone)


def test_progress_runs_over_all_blocks_and_may_be_stopped(adult: Table) -> None:
    shares: list[float] = []
    method = Blocks(k=5, block_size=400, iterations=60_000)
    with watching(lambda share, _: shares.append(share) is None):
        method.anonymize(adult, rng=0)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    full = len(shares)
    shares.clear()
    with watching(lambda share, _: shares.append(share) is not None):
        method.anonymize(adult, rng=0)
    assert len(shares) < full / 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stopped_search_is_noted(adult: Table, workers: int) -> None:
    method = Blocks(k=5, block_size=700, iterations=400_000, workers=workers)
    with watching(lambda _share, _loss: False):
        assert method.anonymize(adult, rng=0).provenance.notes == STOPPED


def run_script(script: str) -> Any:
    """Run in an interpreter and a group of processes of its own; the last line it prints is JSON."""
    command = [sys.executable, "-c", script]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **streams) as process:
        try:
            out, err = process.communicate(timeout=100)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a cluster must not outlive a failed test
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


INTERRUPTED = """
import json, os, signal, threading, time
# a shell that starts jobs in the background has them ignore interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
from multiprocessing import active_children
import numpy as np
from fedanon.anonymizers.blocks import Blocks
from fedanon.datasets import load

def interrupt():
    while not active_children():
        time.sleep(0.05)
    time.sleep({wait})  # some workers may still be starting, which must not matter
    os.killpg(0, signal.SIGINT)

if __name__ == "__main__":
    threading.Thread(target=interrupt, daemon=True).start()
    table = load("adult").select_rows(np.arange(0, 30000, 10))
    begin = time.perf_counter()
    release = Blocks(k=5, block_size=700, seconds=600, workers=2).anonymize(table, rng=0)
    print(json.dumps({"notes": release.provenance.notes, "seconds": time.perf_counter() - begin}))
"""


@pytest.mark.parametrize("wait", [0, 3])
def test_an_interrupt_ends_the_processes_with_what_they_have(wait: int) -> None:
    found = run_script(INTERRUPTED.replace("{wait}", str(wait)))
    assert tuple(found["notes"]) == STOPPED
    assert found["seconds"] < 90


ON_RAY = """
import json
import numpy as np
import ray
from fedanon.anonymizers.blocks import Blocks
from fedanon.datasets import load

table = load("adult").select_rows(np.arange(0, 30000, 10))
release = Blocks(k=5, block_size=700, iterations=20_000, workers=2, engine="ray").anonymize(table, rng=3)
assert not ray.is_initialized(), "the cluster ends with the work"
print(json.dumps(release.groups.labels.tolist()))
"""


def test_ray_changes_nothing(alone: IntArray) -> None:
    np.testing.assert_array_equal(run_script(ON_RAY), alone)


STOPPED_ON_RAY = """
import json
import numpy as np
import ray
from fedanon.anonymizers.blocks import Blocks
from fedanon.anonymizers.progress import watching
from fedanon.datasets import load

table = load("adult").select_rows(np.arange(0, 30000, 10))
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
with watching(lambda share, loss: False):
    method = Blocks(k=5, block_size=700, iterations=400_000, workers=2, engine="ray")
    notes = method.anonymize(table, rng=3).provenance.notes
assert ray.is_initialized(), "a cluster that was there stays"
ray.shutdown()
print(json.dumps(notes))
"""


@pytest.mark.slow
def test_a_stopped_search_is_noted_on_ray() -> None:
    assert tuple(run_script(STOPPED_ON_RAY)) == STOPPED


def test_without_ray_the_error_names_the_extra(adult: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"fedanon\[simulation\]"):
        Blocks(k=5, method="tdg", engine="ray").anonymize(adult, rng=0)


def test_loss_and_risk_are_those_of_the_blocks_put_together(adult: Table, tmp_path: Path) -> None:
    """Merging is exact: the releases of the blocks, as published and one below the other, measure the same."""
    method = Blocks(k=5, method="tdg", block_size=400)
    whole = method.anonymize(adult, rng=0)
    rng = np.random.default_rng(0)
    blocks = method.blocks(adult, rng)
    parts = [
        (rows, part := adult.select_rows(rows), method.inner(1.0).anonymize(part, rng=stream))
        for rows, stream in zip(blocks, rng.spawn(len(blocks)), strict=True)
    ]
    assert len(parts) > 3
    published = pd.concat([release.to_frame().set_axis(rows) for rows, _, release in parts]).sort_index()
    published.to_csv(tmp_path / "parts.csv", index=False)
    together = reconstruct(read_release(tmp_path / "parts.csv", adult.schema), adult)
    measures = ["ncp", "ncp_published", "linkage_expected", "linkage_first", "k_reached"]
    assert evaluate(adult, together, measures) == pytest.approx(evaluate(adult, whole, measures), rel=1e-12)
    mean = sum(len(part) * ncp(part, release) for _, part, release in parts) / len(adult)
    assert ncp(adult, whole) == pytest.approx(mean, rel=1e-12)


def test_the_method_must_claim_k() -> None:
    for method in ("identity", "blocks"):
        with pytest.raises(ConfigError, match="must be a method that claims k"):
            Blocks(k=5, method=method)


def test_traits_are_those_of_the_method() -> None:
    means = Blocks(k=5, method="mdav")
    assert (means.truthful, means.numeric_only) == (False, True)
    assert (Blocks(k=5).truthful, Blocks(k=5).numeric_only) == (True, False)
