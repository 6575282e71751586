"""The recipes of CONTRIBUTING.md work as they are printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.attacks import ATTACKS
from fedanon.attacks.context import AttackContext
from fedanon.attacks.suite import run_attacks, select_attacks
from fedanon.datasets import load
from fedanon.metrics import METRICS, evaluate
from tests.anonymizers.test_contract import check_contract

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture
def recipes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ANONYMIZERS.names()
    METRICS.names()
    ATTACKS.names()
    for i, recipe in enumerate(RECIPES):
        module = ModuleType(f"recipe_{i}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(recipe, module.__dict__)
    yield
    ANONYMIZERS._components.pop("coin_toss")
    METRICS._components.pop("largest_class")
    ATTACKS._components.pop("unique_class")


@pytest.mark.usefixtures("recipes")
def test_recipes() -> None:
    table = load("adult").select_rows(np.arange(200))
    anonymizer = ANONYMIZERS["coin_toss"](k=20)  # type: ignore[call-arg]
    check_contract(anonymizer, table, 0)
    release = anonymizer.anonymize(table, rng=0)
    assert evaluate(table, release, ["largest_class"])["largest_class"] >= 100
    raw = ANONYMIZERS["identity"]().anonymize(table, rng=0)
    found = [
        run_attacks(AttackContext(table, r, None), select_attacks("unique_class")).results[0].rate
        for r in (raw, release)
    ]
    assert found[0] > 0.5
    assert found[1] == 0
