"""Rules of the house that no linter knows: lengths, kernels, names of array types, heavy imports, import cycles."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "fedanon").rglob("*.py"))}

MAX_FILE, MAX_FUNCTION = 450, 60
HEAVY = {
    "numba",
    "torch",
    "xgboost",
    "matplotlib",
    "pyarrow",
    "openpyxl",
    "sqlalchemy",
    "duckdb",
    "psycopg",
    "fhirpathpy",
}
#: modules, besides the kernels, that are about a heavy package, and are themselves imported only where they are used
MAY_IMPORT = {"fedanon/report/pdf.py:matplotlib"}

#: what does not keep the rules yet, by test; an entry that is no longer needed fails, so the lists can only shrink
EXCEPTIONS: dict[str, set[str]] = {
    "lines": set(),
    "functions": set(),
    "aliases": set(),
    "heavy": set(),
    "cycles": set(),
}


@cache
def tree(file: str) -> ast.Module:
    return ast.parse(FILES[file].read_text(encoding="utf-8"))


def is_kernel(file: str) -> bool:
    """Kernels are compiled: modules with an underscore beside their method, and the shared ones."""
    name = Path(file).name
    return file.startswith("fedanon/kernels/") or (name.startswith("_") and "numba" in imported(file))


@cache
def imported(file: str) -> frozenset[str]:
    """The packages outside fedanon that a module imports at top level when it is imported."""
    roots = set()
    for node in top_level(tree(file)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots.add(node.module.split(".")[0])
    return frozenset(roots)


def top_level(module: ast.Module) -> list[ast.stmt]:
    """The statements that run when a module is imported, those under TYPE_CHECKING left out."""
    found: list[ast.stmt] = []
    waiting = list(module.body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if isinstance(node, ast.If):
            waiting += node.orelse if "TYPE_CHECKING" in ast.dump(node.test) else node.body + node.orelse
        elif isinstance(node, ast.Try):
            waiting += node.body + node.orelse + node.finalbody
            waiting += [inner for handler in node.handlers for inner in handler.body]
        elif isinstance(node, ast.With):
            waiting += node.body
    return found


def check(rule: str, broken: set[str]) -> None:
    """Nothing breaks a rule but what is listed, and nothing is listed in vain."""
    assert broken - EXCEPTIONS[rule] == set()
    assert EXCEPTIONS[rule] - broken == set(), "no longer an exception: remove it from the list"


def test_files_are_short() -> None:
    lengths = {file: len(path.read_text(encoding="utf-8").splitlines()) for file, path in FILES.items()}
    check("lines", {file for file, lines in lengths.items() if lines > MAX_FILE})


def test_functions_are_short() -> None:
    check(
        "functions",
        {
            f"{file}:{node.name}"
            for file in FILES
            if not is_kernel(file)
            for node in ast.walk(tree(file))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.end_lineno is not None
            and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
        },
    )


def test_only_kernels_import_numba() -> None:
    for file in FILES:
        for node in ast.walk(tree(file)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            if any(name.split(".")[0] == "numba" for name in names):
                assert is_kernel(file), f"{file} imports numba: move what is compiled to a module with an underscore"


def test_array_types_are_named_in_one_place() -> None:
    """No module but `fedanon.types` gives `NDArray[...]` another name."""
    broken = set()
    for file in FILES:
        for node in [] if file == "fedanon/types.py" else tree(file).body:
            value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Subscript) and ast.unparse(value.value).endswith("NDArray"):
                target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
                broken.add(f"{file}:{ast.unparse(target)}")
    check("aliases", broken)


def test_no_two_classes_share_a_name() -> None:
    """A name says which class is meant; those of one module alone begin with an underscore."""
    found: dict[str, list[str]] = {}
    for file in FILES:
        for node in tree(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(file)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    """Importing a module costs no more than numpy and pandas; kernels import numba, which they are for."""
    broken = {
        f"{file}:{name}"
        for file in FILES
        for name in sorted(imported(file) & HEAVY)
        if not (name == "numba" and is_kernel(file))
    }
    check("heavy", broken - MAY_IMPORT)


def test_no_import_cycles() -> None:
    """Imports inside functions count too: a cycle that shows only at run time is still one."""
    graph = {file: _fedanon_imports(file) for file in FILES}
    check("cycles", {file for cycle in _components(graph) for file in cycle})


def _fedanon_imports(file: str) -> set[str]:
    checked = {
        inner
        for node in ast.walk(tree(file))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found: set[str] = set()
    for node in ast.walk(tree(file)):
        if node in checked:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    paths = {f"{name.replace('.', '/')}{end}" for name in found for end in (".py", "/__init__.py")}
    return {path for path in paths if path in FILES and path != file}


def _components(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that reach each other (Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[set[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph[node]:
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                cycles.append(set(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in number:
            visit(node)
    return cycles


@pytest.mark.parametrize("package", [p.parent for f, p in FILES.items() if f.endswith("__init__.py")], ids=str)
def test_every_package_introduces_itself(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert len(text) > 20, f"{package.name} says nothing about itself"
