"""Hierarchy: a taxonomy of a categorical attribute, stored as arrays.

Leaves are numbered in depth-first order, so the leaves below any node are consecutive and the lowest
common ancestor of a set of leaves is that of its smallest and its largest number. A class of records
is therefore described by one (lowest, highest) pair of codes per attribute, numeric or categorical,
and every loss is a function of that pair.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import DataError, SchemaError
from fedanon.types import FloatArray, IntArray

ROOT = "*"
MISSING = "(missing)"
MAX_DEPTH = 64


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A rooted tree of labels; nodes 0..n_leaves-1 are the leaves in depth-first order, the last is the root.

    Parameters
    ----------
    labels : label of each node.
    parent : parent of each node; the root is its own parent.
    first, last : the leaves below node v are first[v] .. last[v] (both included).
    height : number of edges from a node down to its deepest leaf.
    shares : share of a domain that each node covers, where the leaves are only those at hand; else leaves are counted.
    """

    labels: tuple[str, ...]
    parent: IntArray
    first: IntArray
    last: IntArray
    height: IntArray
    shares: FloatArray | None = None

    # ---- building -------------------------------------------------------------------------------

    @classmethod
    def flat(cls, values: Iterable[str], *, root: str = ROOT) -> Hierarchy:
        """All values directly below the root."""
        return cls.from_paths([(value, root) for value in values])

    @classmethod
    def from_nested(cls, children: Any, *, root: str = ROOT, name: str = "taxonomy") -> Hierarchy:
        """Build from nested tables and lists, as a schema file writes them.

        A mapping maps an inner node to its children; a list holds leaves (text) and mappings; an
        inner node with an empty list is a leaf.
        """
        return cls.from_paths(list(_paths(children, (root,), name)), name=name)

    @classmethod
    def from_paths(cls, paths: Sequence[Sequence[str]], *, name: str = "taxonomy") -> Hierarchy:
        """Build from one path per leaf, leaf first and root last (a row of an ARX hierarchy file).

        A label that repeats along a path is one node, so paths padded to equal length are fine.
        """
        cleaned = [_squeeze(path) for path in paths]
        _check_paths(cleaned, name)
        return _assemble(cleaned, name)

    # ---- reading --------------------------------------------------------------------------------

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.last[-1]) + 1

    @property
    def root(self) -> int:
        """Node number of the root."""
        return len(self.labels) - 1

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """Leaf number of each leaf label."""
        return {label: code for code, label in enumerate(self.labels[: self.n_leaves])}

    @cached_property
    def nodes(self) -> Mapping[str, int]:
        """Node number of each label."""
        return {label: node for node, label in enumerate(self.labels)}

    @cached_property
    def leaf_counts(self) -> IntArray:
        """Number of leaves below each node (1 for a leaf)."""
        return np.asarray(self.last - self.first + 1, dtype=np.int32)

    @cached_property
    def node_shares(self) -> FloatArray:
        """Share of the whole below each node: of its domain where that is declared, else of the leaves."""
        return np.asarray(self.leaf_counts / self.n_leaves if self.shares is None else self.shares, dtype=np.float64)

    @cached_property
    def leaf_loss(self) -> FloatArray:
        """Loss of publishing each node: its share of the whole, 0 for a leaf that is one value (definition of NCP)."""
        return self.node_shares if self.shares is not None else np.where(self.leaf_counts > 1, self.node_shares, 0.0)

    @cached_property
    def height_loss(self) -> FloatArray:
        """Height of each node over the height of the tree."""
        return np.asarray(self.height / max(int(self.height[-1]), 1), dtype=np.float64)

    def common_ancestor(self, low: NDArray[Any], high: NDArray[Any]) -> IntArray:
        """Lowest common ancestor of all leaves between ``low`` and ``high``, elementwise."""
        node = np.asarray(low, dtype=np.int32).copy()
        open_ = np.flatnonzero(node != high)
        while open_.size:
            node[open_] = self.parent[node[open_]]
            here = node[open_]
            open_ = open_[(self.first[here] > low[open_]) | (self.last[here] < high[open_])]
        return node

    @cached_property
    def neighbor_ancestor(self) -> IntArray:
        """Lowest common ancestor of the leaves i and i + 1, for every i but the last."""
        leaves = np.arange(self.n_leaves, dtype=np.int32)
        return self.common_ancestor(leaves[:-1], leaves[1:])

    @cached_property
    def depth(self) -> IntArray:
        """Number of edges from the root down to each node."""
        depth = np.zeros(len(self.labels), dtype=np.int32)
        for node in range(self.root - 1, -1, -1):  # parents are numbered after their children
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def at_level(self, level: int) -> IntArray:
        """The node each leaf is generalized to at a level: 0 the leaves, the tree's height the root.

        A leaf that hangs higher than the deepest stays itself at the first levels, as in an ARX file padded so.
        """
        nodes = np.arange(self.n_leaves, dtype=np.int32)
        for deepest in range(int(self.height[-1]), int(self.height[-1]) - level, -1):
            nodes = np.where(self.depth[nodes] >= deepest, self.parent[nodes], nodes)
        return nodes

    def paths(self) -> list[list[str]]:
        """One path of labels per leaf, leaf first, root last."""
        return [self._path(leaf) for leaf in range(self.n_leaves)]

    def _path(self, node: int) -> list[str]:
        path = [self.labels[node]]
        while node != self.root:
            node = int(self.parent[node])
            path.append(self.labels[node])
        return path

    def with_missing(self) -> Hierarchy:
        """The same tree with one more leaf, the last one, for missing values below the root."""
        if MISSING in self.codes:
            return self
        tree = Hierarchy.from_paths([*self.paths(), (MISSING, self.labels[self.root])])
        if self.shares is None:
            return tree
        share = dict(zip(self.labels, self.shares.tolist(), strict=True))
        return tree.with_shares(np.array([share.get(label, 0.0) for label in tree.labels]))

    def with_shares(self, shares: FloatArray) -> Hierarchy:
        """The same tree, whose nodes cover these shares of a domain."""
        return replace(self, shares=shares)

    def to_nested(self) -> list[Any]:
        """The form a schema file writes; inverse of :meth:`from_nested`."""
        children: dict[int, list[int]] = {}
        for node in range(self.root):
            children.setdefault(int(self.parent[node]), []).append(node)
        for family in children.values():
            family.sort(key=lambda node: int(self.first[node]))

        def write(node: int) -> Any:
            if node < self.n_leaves:
                return self.labels[node]
            return {self.labels[node]: [write(child) for child in children[node]]}

        return [write(child) for child in children.get(self.root, [])]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self.paths() == other.paths()

    def __hash__(self) -> int:
        return hash(self.labels)


def _paths(children: Any, above: tuple[str, ...], name: str) -> Iterable[tuple[str, ...]]:
    """Yield the leaf-first paths of nested children."""
    if len(above) > MAX_DEPTH:
        raise SchemaError(f"The hierarchy of {name!r} is deeper than {MAX_DEPTH} levels.")
    if isinstance(children, Mapping):
        for label, below in children.items():
            yield from _node_paths(label, below, above, name)
    elif isinstance(children, (list, tuple)):
        for child in children:
            if isinstance(child, Mapping):
                yield from _paths(child, above, name)
            else:
                yield (_text(child, name), *above)
    else:
        raise SchemaError(f"The hierarchy of {name!r} must be made of tables and lists.")


def _node_paths(label: Any, below: Any, above: tuple[str, ...], name: str) -> Iterable[tuple[str, ...]]:
    path = (_text(label, name), *above)
    if isinstance(below, (list, tuple)) and not below:
        yield path
    else:
        yield from _paths(below, path, name)


def _text(label: Any, name: str) -> str:
    if not isinstance(label, str):
        raise SchemaError(f"The hierarchy of {name!r} must hold text labels only; write numbers in quotes.")
    return label


def _squeeze(path: Sequence[str]) -> tuple[str, ...]:
    """Drop consecutive repeats."""
    return tuple(label for i, label in enumerate(path) if i == 0 or label != path[i - 1])


def _check_paths(paths: list[tuple[str, ...]], name: str) -> None:
    if not paths:
        raise SchemaError(f"The hierarchy of {name!r} is empty.")
    if any(not path or not path[0] for path in paths):
        raise SchemaError(f"The hierarchy of {name!r} has a row without a leaf.")
    if min(map(len, paths)) < 2:
        raise SchemaError(f"The hierarchy of {name!r} has a value that is the root itself.")
    if max(map(len, paths)) > MAX_DEPTH:
        raise SchemaError(f"The hierarchy of {name!r} is deeper than {MAX_DEPTH} levels.")
    roots = {path[-1] for path in paths}
    if len(roots) > 1:
        raise SchemaError(f"The hierarchy of {name!r} has {len(roots)} roots; all paths must end in the same label.")
    repeats = len(paths) - len({path[0] for path in paths})
    if repeats:
        raise SchemaError(f"The hierarchy of {name!r} lists {repeats} leaves more than once.")


def _assemble(paths: list[tuple[str, ...]], name: str) -> Hierarchy:
    parent_of = _parents(paths, name)
    order = _depth_first(paths, parent_of)
    leaf_set = {path[0] for path in paths}
    leaves = [label for label in order if label in leaf_set]
    # inner nodes after the leaves, children before parents, so that the root comes last
    inner = [label for label in reversed(order) if label not in leaf_set]
    labels = (*leaves, *inner)
    number = {label: i for i, label in enumerate(labels)}
    parent = np.array([number[parent_of.get(label, label)] for label in labels], dtype=np.int32)
    return Hierarchy(labels, parent, *_extents(parent, len(leaves)))


def _parents(paths: list[tuple[str, ...]], name: str) -> dict[str, str]:
    parent_of: dict[str, str] = {}
    clashes: set[str] = set()
    for path in paths:
        if len(set(path)) < len(path):
            raise SchemaError(f"The hierarchy of {name!r} has a cycle: a label is its own ancestor.")
        for child, above in itertools.pairwise(path):
            if parent_of.setdefault(child, above) != above:
                clashes.add(child)
    if clashes:
        raise SchemaError(f"The hierarchy of {name!r} gives {len(clashes)} labels more than one parent.")
    inner = {label for path in paths for label in path[1:]}
    if len(paths) > 1 and any(path[0] in inner for path in paths):
        raise SchemaError(f"The hierarchy of {name!r} uses a label both as a leaf and as an inner node.")
    return parent_of


def _depth_first(paths: list[tuple[str, ...]], parent_of: dict[str, str]) -> list[str]:
    """Labels from the root down, children in order of first appearance."""
    children: dict[str, dict[str, None]] = {}
    for path in paths:
        for child in path[:-1]:
            children.setdefault(parent_of[child], {})[child] = None
    order, stack = [], [paths[0][-1]]
    while stack:
        label = stack.pop()
        order.append(label)
        stack.extend(reversed(children.get(label, {})))
    return order


def _extents(parent: IntArray, n_leaves: int) -> tuple[IntArray, IntArray, IntArray]:
    """First leaf, last leaf and height of every node; children are numbered before their parents."""
    size = len(parent)
    first = np.full(size, size, dtype=np.int32)
    last = np.full(size, -1, dtype=np.int32)
    height = np.zeros(size, dtype=np.int32)
    first[:n_leaves] = last[:n_leaves] = np.arange(n_leaves)
    for node in range(size - 1):
        above = parent[node]
        first[above] = min(first[above], first[node])
        last[above] = max(last[above], last[node])
        height[above] = max(height[above], height[node] + 1)
    return first, last, height


# ---- ARX hierarchy files -------------------------------------------------------------------------

MAX_BYTES = 64 * 2**20


def read_arx_hierarchy(path: str | Path, *, name: str | None = None) -> Hierarchy:
    """Read a hierarchy in ARX's CSV format (no header, last level the root)."""
    path = Path(path)
    name = name or path.stem
    text = _read_text(path)
    delimiter = ";" if ";" in text else ","
    csv.field_size_limit(MAX_BYTES)
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    if not rows:
        raise SchemaError(f"The hierarchy file of {name!r} is empty.")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise SchemaError(f"The rows of the hierarchy of {name!r} have {len(widths)} different lengths.")
    if widths == {1}:
        raise SchemaError(f"The hierarchy of {name!r} has one column; a row needs a value and its ancestors.")
    return Hierarchy.from_paths(rows, name=name)


def write_arx_hierarchy(hierarchy: Hierarchy) -> str:
    """The text of an ARX hierarchy file; short paths are padded by repeating the leaf's parent."""
    paths = hierarchy.paths()
    depth = max(map(len, paths))
    rows = [path[:1] * (depth - len(path)) + path for path in paths]
    return "".join(";".join(row) + "\n" for row in rows)


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"The hierarchy file {path.name} is larger than {MAX_BYTES // 2**20} MB.")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"The hierarchy file {path.name} does not exist.") from None
    except (OSError, UnicodeDecodeError):
        raise DataError(f"The hierarchy file {path.name} cannot be read as UTF-8 text.") from None
