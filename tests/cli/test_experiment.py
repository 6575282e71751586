"""`fedanon experiment` as a researcher uses it: run, look, compare."""

from __future__ import annotations

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
