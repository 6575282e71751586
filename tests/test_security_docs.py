"""SECURITY.md and the threat model name the test behind every line: it exists, and is slow where it is said to be."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ("SECURITY.md", "docs/explanation/threat_model.md")
#: `test_a.py::test_b`, `::test_c` of the file named last, `tests/x/test_a.py`, or a folder; in italics if slow
NAMED = re.compile(r"(?P<slow>\*?)`(?P<path>(?:tests/[\w/]*)?(?:test_\w+\.py)?)(?:::(?P<test>test_\w+))?`")


def named_tests(document: str) -> list[tuple[Path, str, bool]]:
    """Paths, functions (or none), and whether they are said to be slow, in the order they are named."""
    found: list[tuple[Path, str, bool]] = []
    for line in (ROOT / document).read_text(encoding="utf-8").splitlines():
        last = ""
        for match in NAMED.finditer(line):
            last = match["path"] or last
            if last and (match["path"] or match["test"]):
                path = ROOT / last if last.startswith("tests/") else ROOT / "tests" / "federated" / last
                found.append((path, match["test"] or "", bool(match["slow"])))
    return found


@lru_cache
def functions(path: Path) -> dict[str, bool]:
    """The tests of a file, and whether each is marked slow."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    marked = any(isinstance(node, ast.Assign) and "mark.slow" in ast.unparse(node) for node in tree.body)
    return {
        node.name: marked or any(ast.unparse(each).endswith("mark.slow") for each in node.decorator_list)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("document", DOCS)
def test_every_named_test_exists_and_is_as_slow_as_it_says(document: str) -> None:
    for path, test, slow in named_tests(document):
        assert path.exists(), f"{document} names {path.relative_to(ROOT)}"
        if path.suffix != ".py":
            assert list(path.glob("test_*.py")), f"{document} names {path.name}, which holds no test"
            continue
        known = functions(path)
        assert not test or test in known, f"{document} names {path.name}::{test}"
        chosen = [known[test]] if test else list(known.values())
        assert all(chosen) if slow else not all(chosen), f"{document}: {path.name}::{test} is slow or it is not"


def test_every_line_of_the_threat_model_names_one() -> None:
    rows = [
        line
        for line in (ROOT / "docs/explanation/threat_model.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| **")
    ]
    assert len(rows) >= 15
    for row in rows:
        said = row.rsplit("|", 2)[1]
        assert NAMED.search(said) or "as above" in said, row
    assert len(named_tests("docs/explanation/threat_model.md")) >= 25, "the names are found at all"
