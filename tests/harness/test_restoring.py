"""Cells restored from stored tables: what a clone of a repository has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fedanon.harness.experiment import Experiment, parse_experiment
from fedanon.harness.restoring import UNRECORDED, finished_cells
from fedanon.harness.result_set import MANIFEST, read_results
from fedanon.harness.runner import kept_cells, run

TOML = """
[[grid]]
name = "releases"
task = "release"
dataset = "randhie"
metrics = ["ncp"]
k = {k}
methods = ["mondrian", {{ name = "fixed_interval", set = {{ n_bins = 4 }} }}]
[[grid]]
name = "again"
task = "release"
dataset = "randhie"
metrics = ["ncp"]
k = 5
methods = [{{ name = "mondrian", label = "the same cell" }}]
[[grid]]
name = "rounds"
task = "federation"
dataset = "randhie"
partition = "by:site"
rounds = 3
evaluate_every = 1
model = "lr"
k = 5
methods = ["mondrian"]
"""


def experiment(k: str) -> Experiment:
    return parse_experiment(TOML.format(k=k), name="test", folder=Path())


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("computed")
    run(experiment("[5, 10]"), folder, workers=1)
    return folder


@pytest.fixture
def clone(computed: Path, tmp_path: Path) -> Path:
    """The tables alone, as a repository holds them."""
    shutil.copytree(computed, tmp_path / "clone", ignore=shutil.ignore_patterns("cells", "results.parquet"))
    return tmp_path / "clone"


def test_a_clone_computes_only_what_is_new(clone: Path) -> None:
    before = read_results(clone)
    done = run(experiment("[5, 10, 20]"), clone, workers=1)
    assert (done.total, done.kept, done.computed) == (5, 4, 1)
    after = read_results(clone)
    old = after.results[after.results["k"].isna() | after.results["k"].ne(20)].reset_index(drop=True)
    pd.testing.assert_frame_equal(old, before.results)
    pd.testing.assert_frame_equal(after.curves, before.curves)
    assert run(experiment("[5, 10, 20]"), clone, workers=1).computed == 0


def test_a_cell_with_other_parameters_is_not_restored(clone: Path) -> None:
    changed = parse_experiment(TOML.format(k="[5, 10]").replace("rounds = 3", "rounds = 2"), name="test", folder=Path())
    found = finished_cells(changed, clone)
    assert {cell.grid for cell in changed.cells if cell.key not in found} == {"rounds"}


def test_what_other_code_computed_stays_stale(clone: Path) -> None:
    manifest = json.loads((clone / MANIFEST).read_text(encoding="utf-8"))
    manifest["cell_code"] = {"other": [key for keys in manifest["cell_code"].values() for key in keys]}
    (clone / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    assert {cell.code for cell in finished_cells(experiment("[5, 10]"), clone).values()} == {"other"}
    assert not kept_cells(experiment("[5, 10]"), clone, stale=True)
    done = run(experiment("[5, 10]"), clone, workers=1, stale=True)
    assert (done.computed, done.kept) == (4, 0)
    assert len(kept_cells(experiment("[5, 10]"), clone, stale=True)) == 4
    # a manifest of before cells were named says of one version only who computed what
    del manifest["cell_code"]
    shutil.rmtree(clone / "cells")
    for codes, expected in (({"one": 4}, "one"), ({"one": 2, "two": 2}, UNRECORDED)):
        (clone / MANIFEST).write_text(json.dumps(manifest | {"code": codes}), encoding="utf-8")
        assert {cell.code for cell in finished_cells(experiment("[5, 10]"), clone).values()} == {expected}


def test_curves_are_small_and_join_their_cells(computed: Path) -> None:
    found = read_results(computed).curves
    assert set(found["grid"]) == {"rounds"}
    accuracy = found[found["measure"] == "accuracy"]
    assert accuracy["round"].tolist() == [1, 2, 3]
    results = read_results(computed).results
    last = results[(results["grid"] == "rounds") & (results["measure"] == "accuracy")]["value"].item()
    assert accuracy["value"].iloc[-1] == pytest.approx(last, rel=1e-4)
