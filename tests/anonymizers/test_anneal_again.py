"""A search by the clock is written down, so that it can be made again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fedanon.anonymizers import Anneal, progress
from fedanon.data.readers import read_table
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.io.manifest import Manifest
from fedanon.io.release_file import write_release
from fedanon.testing.examples import example_table
from fedanon.verification import Verification

SCHEMA = Schema(tuple(Numeric(name, Role.QUASI_IDENTIFYING, 0, 999, True) for name in "abc"))


def rows(tmp_path: Path) -> tuple[Path, Table]:
    path = tmp_path / "in.csv"
    drawn = np.random.default_rng(3).integers(0, 999, (600, 3))
    pd.DataFrame(drawn, columns=list("abc")).to_csv(path, index=False)
    return path, read_table(path, SCHEMA)


def rebuilt(table: Table, path: Path, method: Anneal, tmp_path: Path) -> tuple[str, str]:
    release = method.anonymize(table, rng=1)
    out = write_release(release, table, tmp_path / "out.csv")
    manifest = Manifest.beside(out)
    assert manifest is not None
    found = {check.name: check for check in Verification(manifest, original=path).checks(rebuild=True)}
    return found["rebuild"].outcome, found["rebuild"].text


def test_a_budget_of_wall_time_can_be_rebuilt(tmp_path: Path) -> None:
    path, table = rows(tmp_path)
    Anneal(k=3, iterations=2000).anonymize(table, rng=1)  # compiled, so that the time is spent on the search
    method = Anneal(k=3, seconds=0.3, restarts=2)
    made = method.anonymize(table, rng=1).provenance.made
    assert made["iterations"] == [sum(steps for steps, _ in run) for run in made["runs"]]
    assert len(made["runs"]) == 2
    assert rebuilt(table, path, method, tmp_path)[0] == "pass"


def test_a_search_that_was_stopped_can_be_rebuilt(tmp_path: Path) -> None:
    path, table = rows(tmp_path)
    with progress.watching(lambda share, _: share < 0.3):
        outcome, text = rebuilt(table, path, Anneal(k=3, iterations=200_000), tmp_path)
    assert outcome == "pass", text


def test_runs_joined_in_limited_time_are_left_open(tmp_path: Path) -> None:
    path, table = rows(tmp_path)
    outcome, text = rebuilt(table, path, Anneal(k=3, seconds=0.2, restarts=2, recombine=True), tmp_path)
    assert outcome == "open"
    assert "limited wall time" in text


def test_a_budget_of_trials_leaves_nothing_to_write_down(tmp_path: Path) -> None:
    _, table = rows(tmp_path)
    provenance = Anneal(k=3, iterations=5000).anonymize(table, rng=1).provenance
    assert provenance.made == {}
    assert "made" not in provenance.to_dict()


def test_the_table_decides_about_means() -> None:
    numbers, mixed = example_table(numeric_only=True), example_table()
    assert Anneal(k=3).for_table(numbers).objective == "sse"
    assert not Anneal(k=3).for_table(numbers).truthful
    assert Anneal(k=3).for_table(mixed).objective == "ncp"
    assert Anneal(k=3, objective="ncp").for_table(numbers).truthful
    assert Anneal(k=3, guide="target").for_table(numbers).objective == "ncp"
    assert Anneal(k=3, require="l=2:illness").for_table(numbers).objective == "ncp"
