"""The ledger of a series names classes as the file shows them, so that an open end is no fault."""

from __future__ import annotations

from pathlib import Path

from fedanon.datasets.example_files import write_example_files
from tests.cli.conftest import Run, run

__all__ = ["run"]


def test_a_series_with_an_open_end_is_verified(tmp_path: Path, run: Run) -> None:
    write_example_files(tmp_path)
    table, schema = tmp_path / "north.csv", str(tmp_path / "schema.toml")
    released = tmp_path / "out.csv"
    common = ["--schema", schema, "--k", "5", "--require", "l=2:diagnosis"]
    assert run("anonymize", str(table), *common, "-o", str(released), "--series").code == 0
    assert "+" in released.read_text().split("\n", 1)[1], "the oldest are published with an open end"
    later = tmp_path / "later.csv"
    assert run("anonymize", str(table), *common, "-o", str(later), "--previous", f"{released}.manifest.json").code == 0
    assert run("verify", str(later), "--schema", schema, "--previous", f"{released}.manifest.json").code == 0
