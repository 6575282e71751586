"""The tables of the READMEs and of docs/ are what the harness prints from stored results; the Python example runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fedanon.datasets.example_files import write_example_files
from tests.cli.conftest import Run, run
from tests.printed import printed

__all__ = ["run"]

ROOT = Path(__file__).parents[1]
TABLES = [
    found
    for file in (ROOT / "README.md", ROOT / "experiments" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for found in re.findall(
        r"<!-- (fedanon experiment (?:show|summary) .*?) -->\n(.*?)<!-- end -->",
        file.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
]


def test_there_is_a_table() -> None:
    assert TABLES


@pytest.mark.parametrize(("command", "table"), TABLES)
def test_tables_come_from_stored_results(command: str, table: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run(*shlex.split(command)[1:]).out == table


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its types are checked with the recipes, in test_contributing.py."""
    (example,) = printed("README.md")
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(example, names)
    assert "'k_reached': " in capsys.readouterr().out
    assert (tmp_path / "by_gfkmc.csv").exists()
    assert (tmp_path / "by_gfkmc.csv.manifest.json").exists()
    assert len(names["recoded"]) == 60  # type: ignore[arg-type]


def test_it_fits_two_screens() -> None:
    """Of about sixty lines each."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
