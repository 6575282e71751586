"""Families are importable by class, without importing what only a few of them need."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.attacks import ATTACKS
from fedanon.models import MODELS
from fedanon.privacy import PRIVACY_MODELS

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in sorted((ROOT / "fedanon").rglob("__init__.py"))
    if "lazy_exports(" in path.read_text(encoding="utf-8")
]


def type_checked(package: str) -> dict[str, tuple[str, str]]:
    """Name -> module, and name there, of what a package imports for type checkers alone."""
    tree = ast.parse(ROOT.joinpath(*package.split("."), "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_are_the_same_for_type_checkers_and_the_interpreter(package: str) -> None:
    module = importlib.import_module(package)
    for name, (origin, there) in type_checked(package).items():
        assert getattr(module, name) is getattr(importlib.import_module(origin), there)
        assert name in dir(module)
        assert name in module.__all__
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = module.Nothing


@pytest.mark.parametrize(
    "component", [c for registry in (ANONYMIZERS, ATTACKS, MODELS, PRIVACY_MODELS) for _, c in registry.items()]
)
def test_every_component_is_exported_by_its_family(component: type) -> None:
    family = ".".join(component.__module__.split(".")[:2])
    assert getattr(importlib.import_module(family), component.__name__) is component


def test_importing_the_families_imports_nothing_heavy() -> None:
    code = f"import sys, {', '.join(PACKAGES)}; print({{'numba', 'torch', 'xgboost'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
