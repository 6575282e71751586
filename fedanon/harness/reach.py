"""The code that a cell can reach: what may change its numbers, so that only what changed is computed again.

A cell is computed by its task and by the components that its parameters name. From these modules imports are followed
through the sources, also those inside functions. Registries are asked by name, so in a source that imports a registry
a text that is the name of one of its components leads to that one. Comments, docstrings and imports for type checkers
change no number and do not count; data have hashes of their own in the name of a cell.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fedanon
from fedanon.harness.tasks.base import Task

#: what the import of a registry leads to, where names of components are made up in code and no text shows them
MADE_UP = {"METRICS": ("fedanon.metrics", "fedanon.sdc.metrics")}


def start_modules(task: Task) -> tuple[str, ...]:
    """The modules from which the code of a cell is followed: its task, and the components that it names."""
    texts = set(_texts(asdict(task)))
    named = {module for (_, name), modules in _components().items() if name in texts for module in modules}
    return tuple(sorted({type(task).__module__, *named}))


@cache
def reached_modules(start: tuple[str, ...]) -> frozenset[str]:
    """All modules of the project, and of the packages that extend it, that can be reached from some."""
    packages = {"fedanon", *(name.partition(".")[0] for name in start)}
    found: set[str] = set()
    left = list(start)
    while left:
        name = left.pop()
        if name in found or name.partition(".")[0] not in packages:
            continue
        source = _read(name)
        if source is not None:
            found.add(name)
            left += _next(source)
    return frozenset(found)


@cache
def code_hash(start: tuple[str, ...]) -> str:
    """SHA-256 over what the modules reached from some compute."""
    digest = hashlib.sha256()
    for name in sorted(reached_modules(start)):
        source = _read(name)
        assert source is not None  # or it were not reached
        digest.update(f"{name} {source.digest}\n".encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class _Source:
    """What one module says: what it imports, its texts, the components it registers, the names that it exports late."""

    digest: str
    imports: frozenset[tuple[str, str]]
    texts: frozenset[str]
    components: frozenset[tuple[str, str]]
    exports: Mapping[str, str]


def _next(source: _Source) -> Iterator[str]:
    registries = {name for _, name in source.imports}
    for package, name in source.imports:
        yield package
        yield f"{package}.{name}"
        for whole in MADE_UP.get(name, ()):
            yield from _modules_of(whole)
        base = _read(package) if package.startswith("fedanon") else None
        if base is not None and name in base.exports:
            yield base.exports[name]
    for text in source.texts:
        for registry in registries:
            yield from _components().get((registry, text), ())
        if text.startswith("fedanon."):  # a module imported by its name
            yield text.partition(":")[0]


@cache
def _read(name: str) -> _Source | None:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    tree = ast.parse(Path(spec.origin).read_bytes())
    digest = hashlib.sha256(ast.dump(_Bare().visit(tree)).encode()).hexdigest()
    nodes = list(ast.walk(tree))
    exports = _exports(nodes)
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imports = {
        (node.module or "", alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    } | {(alias.name, "") for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return _Source(
        digest, frozenset(imports), frozenset(texts - {*exports, *exports.values()}), _registered(nodes), exports
    )


class _Bare(ast.NodeTransformer):
    """Leaves out docstrings and what only a type checker reads."""

    def visit_If(self, node: ast.If) -> Any:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return [self.visit(each) for each in node.orelse]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _registered(nodes: Iterable[ast.AST]) -> frozenset[tuple[str, str]]:
    """The registries to which a module adds, each with the name of the component."""
    return frozenset(
        (node.func.value.id, str(node.args[0].value))
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.attr == "register"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    )


def _exports(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """The names that a package imports on first use, with their modules."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_exports":
            return {name: module.partition(":")[0] for name, module in ast.literal_eval(node.args[1]).items()}
    return {}


@cache
def _components() -> dict[tuple[str, str], frozenset[str]]:
    """The modules that register a component, by the registry and the name."""
    found: dict[tuple[str, str], set[str]] = {}
    for module in _modules_of("fedanon"):
        source = _read(module)
        for component in source.components if source else ():
            found.setdefault(component, set()).add(module)
    return {component: frozenset(modules) for component, modules in found.items()}


@cache
def _modules_of(package: str) -> tuple[str, ...]:
    root = Path(fedanon.__file__).parent.parent
    folder = root.joinpath(*package.split("."))
    files = (file.relative_to(root).with_suffix("") for file in folder.rglob("*.py"))
    return tuple(sorted(".".join(f.parts[:-1] if f.name == "__init__" else f.parts) for f in files))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
