"""The private names of Flower we rely on: each is there, and none is used that is not listed."""

from __future__ import annotations

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedanon.federated.flower_private import PUBLIC, private_names

PACKAGE = Path(__file__).parents[2] / "fedanon"


def used() -> set[tuple[str, str]]:
    """What modules of fedanon import from Flower beyond what is public, inside functions too."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flwr" and not node.level:
                found |= {(str(node.module), alias.name) for alias in node.names if node.module not in PUBLIC}
            elif isinstance(node, ast.Import):
                plain = {alias.name for alias in node.names if alias.name.split(".")[0] == "flwr"}
                assert plain <= PUBLIC, f"{path.name} imports {plain} whole: import names, so that they can be listed"
    return found


@pytest.mark.parametrize(("module", "name"), sorted(private_names()))
def test_flower_still_has(module: str, name: str) -> None:
    breaks = private_names()[module, name]
    try:
        there = hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}") is not None
    except ImportError as error:
        pytest.fail(f"{module} is gone: {breaks} ({error})")
    assert there, f"{module}.{name} is gone: {breaks}"


def test_the_list_is_what_the_code_imports() -> None:
    assert used() == set(private_names())
