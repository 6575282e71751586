"""`fedanon experiment` as a researcher uses it: run, look, compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

TOML = """
title = "Two methods"
about = "a test"
baseline = "original"
[[grid]]
name = "g"
task = "release"
dataset = "randhie"
metrics = ["ncp", "k_reached"]
k = [5]
seeds = [0, 1]
methods = ["mondrian", { name = "gfkmc" }, { name = "mdav", seeds = 1 }, { name = "identity", label = "original" }]
[[published]]
file = "published.csv"
grid = "g"
source = "a paper"
tolerance = { k_reached = 0, ncp = "1%" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "published.csv").write_text("label,k,k_reached,ncp\nmondrian,5,5,0.9\n", encoding="utf-8")
    path = tmp_path / "two.toml"
    path.write_text(TOML, encoding="utf-8")
    return path


def test_run_status_show_diff_list(run: Run, file: Path) -> None:
    assert "0 of 7 cells finished" in run("experiment", "status", file).out
    done = run("experiment", "run", file, "--workers", "1", "--json").json
    assert (done["computed"], done["kept"], len(done["failures"])) == (6, 0, 1)
    folder = Path(done["folder"])
    assert folder == file.parent / "results" / "two"

    told = run("experiment", "run", file)
    assert "0 cells computed" in told.out
    assert "Failed: mdav k=5" in told.out
    assert "1 of 2 published numbers agree" in told.out

    assert run("experiment", "status", file, "--json").json["finished"] == 6

    rows = run("experiment", "show", folder, "--metrics", "ncp", "--json").json
    assert [(row["label"], row["n"]) for row in rows] == [("mondrian", 2), ("gfkmc", 2), ("original", 2)]
    assert "±" in run("experiment", "show", file).out
    spread = run("experiment", "show", file, "--metrics", "k_reached", "--by", "k", "--markdown").out.splitlines()
    assert spread == [
        "| label | k=5 | no k |",
        "| --- | --- | --- |",
        "| mondrian | 5 | - |",
        "| gfkmc | 5 | - |",
        "| original | - | 1 |",
    ]
    lost = run("experiment", "show", file, "--lost", "--metrics", "ncp", "--json").json
    assert lost[0]["mean"] == pytest.approx(rows[0]["mean"])  # the original loses nothing

    differs = run("experiment", "diff", file, "--json")
    assert differs.code == 1
    (row,) = differs.json
    assert (row["measure"], row["published"]) == ("ncp", 0.9)
    assert len(run("experiment", "diff", file, "--all", "--json").json) == 2
    same = run("experiment", "diff", folder, folder)
    assert (same.code, same.out.strip()) == (0, "0 places differ.")

    (listed,) = run("experiment", "list", file.parent, "--json").json
    assert (listed["name"], listed["cells"], listed["done"]) == ("two", 7, 6)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "nowhere.toml"), 3, "cannot be read"),
        (("show", "nowhere"), 3, "holds no result set"),
        (("run", "{file}", "--engine", "cloud"), 2, "--engine takes"),
    ],
)
def test_bad_input(run: Run, file: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    outcome = run("experiment", *(argument.format(file=file) for argument in arguments))
    assert outcome.code == code
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_what_results_do_not_hold_is_named(run: Run, file: Path) -> None:
    run("experiment", "run", file, "--workers", "1")
    assert "no metric color" in run("experiment", "show", file, "--metrics", "color").err
    assert "no grid h" in run("experiment", "show", file, "--grid", "h").err
    assert "have no such coordinate. Known: k" in run("experiment", "show", file, "--metrics", "ncp", "--by", "age").err
    assert "name it with --metrics" in run("experiment", "show", file, "--metrics", "ncp,k_reached", "--by", "k").err


def test_stale_cells_of_all_experiments_are_run_again(run: Run, file: Path) -> None:
    everything = ("--all", "--folder", file.parent)
    run("experiment", "run", file, "--workers", "1")
    manifest = file.parent / "results" / "two" / "manifest.json"
    codes = json.loads(manifest.read_text(encoding="utf-8"))["code"]
    assert "1 cells to compute" in run("experiment", "status", *everything).out  # the one that fails
    for cell in (file.parent / "results" / "two" / "cells").iterdir():
        (code,) = (code for code in codes if code in cell.read_text(encoding="utf-8"))
        cell.write_text(cell.read_text(encoding="utf-8").replace(code, "other"), encoding="utf-8")
    (plan,) = run("experiment", "status", *everything, "--json").json
    assert (plan["finished"], plan["stale"], plan["left"]) == (6, 6, 7)
    assert "6 of them were computed by other code" in run("experiment", "status", file).out
    done = run("experiment", "run", *everything, "--stale", "--workers", "1")
    assert "[1 of 1] two: 7 cells; left in all: 7 cells" in done.err
    assert "6 cells computed" in done.out
    assert run("experiment", "status", *everything, "--json").json[0]["stale"] == 0


def test_status_of_an_experiment_without_results_and_without_data(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDANON_DATA", str(file.parent))
    other = file.with_name("lacking.toml")
    other.write_text(TOML.partition("[[published]]")[0].replace("randhie", "tarragona"), encoding="utf-8")
    (plan, _) = run("experiment", "status", other, file, "--json").json
    assert (plan["cells"], plan["finished"], plan["left"]) == (7, 0, 7)
    assert plan["note"] == "its data are not at hand"


def test_one_folder_of_output_takes_one_experiment(run: Run, file: Path) -> None:
    outcome = run("experiment", "run", file, file, "-o", file.parent / "out")
    assert (outcome.code, "--output names the folder of one" in outcome.err) == (2, True)
