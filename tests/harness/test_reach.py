"""The code of a cell: all that it runs is reached, and what it cannot reach does not make it stale."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedanon.harness import reach
from fedanon.harness.checking import count_stale
from fedanon.harness.experiment import Experiment, parse_experiment
from fedanon.harness.reach import code_hash, reached_modules, start_modules
from fedanon.harness.result_set import read_manifest
from fedanon.harness.runner import run

#: what runs whenever a parameter is checked or a component is looked up, and cannot change a number
LOOKING_UP = {"fedanon.registry", "fedanon.fields"}

SCHEMA = """
name = "small"
target = "ill"
[attributes.site]
role = "quasi_identifying"
type = "categorical"
values = ["a", "b", "c"]
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [20, 90]
[attributes.weight]
role = "quasi_identifying"
type = "numeric"
range = [0, 200]
[attributes.ill]
role = "sensitive"
type = "categorical"
values = ["no", "yes"]
"""
FEDERATION = 'task="federation"\npartition="by:site"\nrounds=2\nk=5\n'
GRIDS = {
    "release": 'task="release"\nmetrics=["ncp","linkage_expected_share"]\nk=5\nmethods=["mondrian","gfkmc","k_member"]',
    "federation": FEDERATION + 'model=["lr","xgb"]\nmethods=["mondrian"]',
    "robust": FEDERATION + 'strategy="krum"\nmethods=["mondrian"]',
    "joint": FEDERATION + 'methods=["federated_mondrian"]',
    "central": 'task="central"\nmodel="knn"\nk=5\nmethods=["mondrian"]',
    "masking": 'task="masking"\nquasi="age,weight"\nmethods=[{name="mdav",k=3},"rank_swapping"]',
    "bound": 'task="bound"\nk=3\nseconds=1',
    "stream": 'task="stream"\nk=5\ndelay=50\nmethods=["fads"]',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(3)
    age = rng.integers(20, 90, 240)
    ill = np.where(age + rng.normal(0, 15, 240) > 60, "yes", "no")
    columns = {
        "site": rng.choice(["a", "b", "c"], 240),
        "age": age,
        "weight": rng.normal(75, 12, 240).round(),
        "ill": ill,
    }
    pd.DataFrame(columns).to_csv(folder / "small.csv", index=False)
    (folder / "small.toml").write_text(SCHEMA, encoding="utf-8")
    return folder


def read(grid: str, folder: Path) -> Experiment:
    data = '[defaults]\ndata="small.csv"\nschema="small.toml"\nseeds=1\n'
    return parse_experiment(f'title="t"\nabout="a"\n{data}[[grid]]\nname="g"\n{grid}\n', name="test", folder=folder)


@contextmanager
def run_modules() -> Iterator[set[str]]:
    """The modules of the project whose functions run inside the block."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # no module, no body of a class
            name = str(frame.f_globals.get("__name__"))
            if name.startswith("fedanon."):
                found.add(name)

    former = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(former)
        threading.setprofile(None)


@pytest.mark.parametrize("grid", GRIDS)
def test_what_a_cell_runs_is_reached(grid: str, folder: Path) -> None:
    for cell in read(GRIDS[grid], folder).cells:
        cell.task.run()  # kernels are compiled outside the slow look at every call
        with run_modules() as ran:
            cell.task.run()
        assert len(ran) > 5
        assert not ran - LOOKING_UP - reached_modules(start_modules(cell.task))


def test_a_method_does_not_reach_the_others(folder: Path) -> None:
    (mondrian,) = read('task="release"\nk=5\nmetrics=["ncp"]\nmethods=["mondrian"]', folder).cells
    reached = reached_modules(start_modules(mondrian.task))
    assert "fedanon.anonymizers.mondrian.method" in reached
    for other in (
        "anonymizers.anneal",
        "anonymizers.clustering",
        "streams",
        "app",
        "cli",
        "report",
        "federated.client",
    ):
        assert not any(name.startswith(f"fedanon.{other}") for name in reached), other


def test_only_what_computes_changes_a_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "extension_of_a_test.py"

    def hash_of(text: str) -> str:
        module.write_text(text, encoding="utf-8")
        for function in (reach._read, reached_modules, code_hash):
            function.cache_clear()
        return code_hash((module.stem,))

    first = hash_of('"""Doc."""\nimport helper_of_a_test\nx = 1  # why\n')
    assert hash_of('"""Other doc."""\nimport helper_of_a_test\n\nx = 1\n') == first
    assert hash_of("import helper_of_a_test\nx = 2\n") != first


def test_a_manifest_tells_without_data_what_is_stale(tmp_path: Path, folder: Path) -> None:
    run(read(GRIDS["release"], folder), tmp_path, workers=1)
    manifest = read_manifest(tmp_path)
    assert count_stale(manifest) == 0
    (code, *_), start = manifest["code"], manifest["code_of"]
    changed = manifest | {"code_of": start | {code: ["fedanon.harness.tasks.elbow"]}}
    assert count_stale(changed) == manifest["code"][code]
    assert count_stale({key: value for key, value in manifest.items() if key != "code_of"}) == manifest["finished"]
