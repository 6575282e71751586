"""The recipes of CONTRIBUTING.md hold as they are printed: for ruff, for mypy, and for the contract of their kind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from fedanon import (
    ANONYMIZERS,
    ATTACKS,
    DATASETS,
    METRICS,
    MODELS,
    PRIVACY_MODELS,
    STRATEGIES,
    AttackContext,
    evaluate,
    load_dataset,
)
from fedanon.anonymizers import Identity
from fedanon.attacks import run_attacks, select_attacks
from fedanon.cli.app import app
from fedanon.harness.tasks import TASKS
from fedanon.testing import (
    check_anonymizer,
    check_attack,
    check_metric,
    check_model,
    check_privacy_model,
    check_strategy,
)
from tests.printed import ROOT, printed, recipes

REGISTRIES = (ANONYMIZERS, ATTACKS, DATASETS, METRICS, MODELS, PRIVACY_MODELS, STRATEGIES, TASKS)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Every recipe in a file of its own."""
    for name, code in recipes().items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    return sorted(tmp_path.iterdir())


@pytest.fixture
def modules(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Every recipe imported; its component is forgotten afterwards."""
    found = {}
    with ExitStack() as stack:
        for registry in REGISTRIES:
            stack.enter_context(registry.restored())
        for path in files:
            spec = spec_from_file_location(f"recipe_{path.stem}", path)
            assert spec is not None
            assert spec.loader is not None
            module = module_from_spec(spec)
            monkeypatch.setitem(sys.modules, module.__name__, module)
            spec.loader.exec_module(module)
            found[path.stem] = module
        yield found


def test_there_is_a_recipe_for_every_family() -> None:
    assert set(recipes()) == {
        "class_count.py",
        "coffee.py",
        "coin_toss.py",
        "largest_class.py",
        "majority.py",
        "midhinge.py",
        "prototypes.py",
        "unique_class.py",
    }


def test_recipes_pass_the_linter(files: list[Path]) -> None:
    config = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *config, *map(str, files)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_recipes_and_the_example_of_the_readme_pass_the_type_checker(files: list[Path], tmp_path: Path) -> None:
    example = tmp_path / "readme_example.py"
    example.write_text("\n".join(printed("README.md")), encoding="utf-8")
    options = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, (*files, example))],
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_recipes_keep_their_contracts(modules: dict[str, ModuleType]) -> None:
    check_anonymizer(modules["coin_toss"].CoinToss(k=3))
    check_metric(METRICS["largest_class"])
    check_attack(modules["unique_class"].UniqueClass())
    check_model(modules["prototypes"].Prototypes())
    check_strategy(modules["midhinge"].Midhinge())
    check_privacy_model(modules["majority"].NoMajority(column="illness"))


@pytest.mark.usefixtures("modules")
def test_recipes_do_what_they_say() -> None:
    table = load_dataset("adult").select_rows(np.arange(200))
    release = ANONYMIZERS["coin_toss"](k=20).anonymize(table, rng=0)  # type: ignore[call-arg]
    assert evaluate(table, release, ["largest_class"])["largest_class"] >= 100
    raw = Identity().anonymize(table, rng=0)
    found = [
        run_attacks(AttackContext(table, published, None), select_attacks("unique_class")).results[0].rate
        for published in (raw, release)
    ]
    assert found[0] > 0.5
    assert found[1] == 0
    assert len(load_dataset("coffee")) == DATASETS["coffee"].rows
    task = TASKS["class_count"](dataset="coffee", method="mondrian", k=3)  # type: ignore[call-arg]
    assert task.run().metrics == {"classes": 2.0}


@pytest.mark.usefixtures("modules")
def test_help_lists_what_is_registered() -> None:
    shown = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "300"}).stdout
    for registry in (MODELS, STRATEGIES):
        assert ", ".join(registry.names()) in shown
