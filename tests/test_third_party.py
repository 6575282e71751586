"""Another package adds an anonymizer: built, installed beside fedanon, listed, and held to the contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.printed import ROOT, recipes

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "coin-package"
version = "1.0"

[project.entry-points."fedanon.anonymizers"]
coin_toss = "coin_package.coin_toss:CoinToss"

[tool.hatch.build.targets.wheel]
packages = ["coin_package"]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the package is installed."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (source / "coin_package").mkdir()
    (source / "coin_package" / "__init__.py").touch()
    (source / "coin_package" / "coin_toss.py").write_text(recipes()["coin_toss.py"], encoding="utf-8")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(ROOT)])}


def test_it_is_listed(installed: dict[str, str]) -> None:
    command = [sys.executable, "-m", "fedanon.cli", "methods", "--json"]
    listed = json.loads(subprocess.run(command, env=installed, check=True, capture_output=True).stdout)
    (entry,) = [method for method in listed if method["name"] == "coin_toss"]
    assert entry["claim"] == "k-anonymity"
    assert [parameter["name"] for parameter in entry["parameters"]] == ["k", "require", "bias"]


def test_it_passes_the_contract(installed: dict[str, str]) -> None:
    code = """
from fedanon import ANONYMIZERS
from fedanon.testing import check_anonymizer

assert ANONYMIZERS["coin_toss"].__module__ == "coin_package.coin_toss"
check_anonymizer(ANONYMIZERS["coin_toss"](k=3))
"""
    subprocess.run([sys.executable, "-c", code], env=installed, check=True)
