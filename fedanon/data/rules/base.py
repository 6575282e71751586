"""What every rule offers, and the taxonomy that a code rule gives to the codes at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from fedanon.data.hierarchy import MISSING, Hierarchy
from fedanon.errors import SchemaError
from fedanon.types import FloatArray

#: lowest and highest number of a cell
Bounds = tuple[float, float]
#: lowest and highest numbers of many cells
Ends = tuple[FloatArray, FloatArray]


class Domain(NamedTuple):
    """The declared range of a numeric column, both ends included."""

    low: float
    high: float
    integer: bool


#: of a column that declares no range
ANYTHING = Domain(-np.inf, np.inf, True)


class RuleError(SchemaError):
    """What a rule declares makes no sense; whoever reads a schema adds the name of the column."""


class NumberRule(Protocol):
    """How the cells of a numeric column become numbers, and how its intervals are written."""

    @property
    def recodes(self) -> bool:
        """Whether a single value is published otherwise than it is written in the table."""

    @property
    def whole(self) -> bool:
        """Whether only whole numbers can be written."""

    def read(self, texts: Iterable[str]) -> FloatArray:
        """The number of every text, as in a table or as published (then the lower end); NaN where it does not fit."""

    def misfit(self) -> str:
        """What is wrong with texts that do not fit, as a clause after their number."""

    def clip(self, values: FloatArray, domain: Domain) -> FloatArray:
        """The numbers, those beyond an open end of the range moved to it."""

    def settle(self, values: FloatArray, domain: Domain) -> FloatArray:
        """The numbers as they are used from now on, once they have been checked: rounded, where the rule says so."""

    def grain(self, values: FloatArray, domain: Domain) -> Ends | None:
        """The finest cell that may be published of each number; None where that is the number itself."""

    def steps(self, values: FloatArray, domain: Domain) -> Iterator[Ends]:
        """The cells of each number level by level, ever wider, below the whole range."""

    def write(self, ends: Bounds, domain: Domain) -> str:
        """The text of an interval, which :meth:`parse` reads back."""

    def parse(self, text: str, domain: Domain) -> Bounds | None:
        """The interval a text stands for; None if it stands for none."""

    def to_dict(self) -> dict[str, Any]:
        """The keys of a schema file that declare it."""


class CodeRule(Protocol):
    """A taxonomy of codes that need not be listed."""

    def __hash__(self) -> int:
        """Rules are values, by which what follows from them can be kept."""

    @property
    def type_name(self) -> str:
        """The type as a schema file names it."""

    @property
    def level(self) -> str:
        """The finest level that is published."""

    @property
    def distinct_at(self) -> str:
        """The level at which privacy models tell values of a sensitive column apart."""

    def path(self, text: str) -> tuple[str, ...] | None:
        """The labels from a value up to the root, the value as published first; None if it does not fit."""

    def path_through(self, label: str) -> tuple[str, ...] | None:
        """A path through the node with this label, from some value below it; None if there is no such node."""

    def share(self, label: str) -> float:
        """Which share of all codes lies below a node; 0 for a single code."""

    def upper(self, label: str) -> str:
        """The label of :attr:`outline` that a node lies below or is; the root if it lies above all of them."""

    def at_level(self, text: str, level: str) -> str | None:
        """The label of a value at a level; None if it does not fit."""

    def published_at(self, level: str) -> CodeRule:
        """The rule with another finest level."""

    @property
    def outline(self) -> Hierarchy:
        """The uppermost levels with all their nodes, which the features of models are made of."""

    @property
    def samples(self) -> list[str]:
        """One value below each leaf of the outline."""

    def list_paths(self, most: int) -> list[tuple[str, ...]]:
        """The paths of all codes, as fine as ``most`` of them allow: every value lies below the first label of one."""

    def to_dict(self) -> dict[str, Any]:
        """The keys of a schema file that declare it, beside its type."""


def path_of(rule: CodeRule, text: str) -> tuple[str, ...] | None:
    """The path of a value, as it is in a table or as the rule publishes it; None if it does not fit."""
    path = rule.path(text)
    if path is None:
        path = rule.path_through(text)
        return path if path is not None and path[0] == text else None
    return path


def bind_codes(rule: CodeRule, paths: Iterable[tuple[str, ...]], *, name: str) -> Hierarchy:
    """The taxonomy of some paths, in the order of the codes; what its nodes lose is what the rule says."""
    tree = Hierarchy.from_paths(sorted(set(paths)), name=name)
    return tree.with_shares(np.array([rule.share(label) for label in tree.labels]))


def extend_tree(rule: CodeRule, tree: Hierarchy, labels: Iterable[str], *, name: str) -> Hierarchy:
    """The tree with nodes for more labels; it is the same where it has them all, and lacks those that do not fit."""
    unknown = {label for label in labels if label not in tree.nodes}
    found = {label: rule.path_through(label) for label in unknown}
    more = [path for path in found.values() if path is not None]
    if not more:
        return tree
    held = [tuple(path) for path in tree.paths() if path[0] != MISSING]
    wider = bind_codes(rule, [*held, *more], name=name)
    return wider.with_missing() if MISSING in tree.codes else wider


def take_only(entry: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Raise SchemaError if an entry of a schema has keys that do not belong to it."""
    known = {*known}
    unknown = sorted(set(entry) - known)
    if unknown:
        raise SchemaError(f"{what} has unknown keys: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")
