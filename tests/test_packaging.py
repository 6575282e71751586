"""The wheel holds fedanon and its data, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
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


def test_the_flower_app_is_built_and_holds_no_code_but_its_own(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "flwr"), "build", "--app", str(ROOT)]
    env = {**os.environ, "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_HOME": str(tmp_path)}
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    [bundle] = tmp_path.glob("*.fab")
    assert fedanon.__version__.replace(".", "-") in bundle.name.replace(".", "-")
    names = {name for name in zipfile.ZipFile(bundle).namelist() if name.endswith(".py")}
    assert names == {"clients/__init__.py", "clients/app.py", "server/__init__.py", "server/app.py"}


def test_the_version_is_the_same_everywhere() -> None:
    """Flower's builder reads pyproject.toml itself, so that the version stands there too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == fedanon.__version__
    assert f"version: {fedanon.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_former_names_of_extras_still_bring_the_same() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"edge", "federated", "app", "harness", "stream", "all"} <= set(extras)
    assert extras["streams"] == ["fedanon[stream]"]


def test_workflows_name_tests_that_exist() -> None:
    named = [
        path
        for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for path in re.findall(r"\btests/[\w/.]+", file.read_text(encoding="utf-8"))
    ]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
