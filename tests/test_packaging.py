"""The wheel holds fedanon and its data, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import fedanon

ROOT = Path(__file__).parents[1]


def test_wheel_holds_fedanon_only(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {name.split("/")[0] for name in names} == {"fedanon", f"fedanon-{fedanon.__version__}.dist-info"}
    for file in ("adult.data.xz", "adult.toml", "randhie.csv.xz", "nhanes.csv.xz"):
        assert f"fedanon/datasets/bundled/{file}" in names
    assert "fedanon/py.typed" in names


def test_the_changelog_names_this_version() -> None:
    assert f"## {fedanon.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
