"""t-closeness: the sensitive values of a class are distributed about as in the whole release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.rules import CodeRule, bind_codes, path_of
from fedanon.data.schema import Categorical, FreeText, Numeric, Schema, Unit
from fedanon.errors import ConfigError, SchemaError
from fedanon.fields import parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import ROUNDING
from fedanon.privacy.sensitive import CountRule, Counts, Sensitive, SensitiveModel, count_rule
from fedanon.types import BoolArray, FloatArray


@PRIVACY_MODELS.register("t")
@dataclass(frozen=True, kw_only=True)
class TCloseness(SensitiveModel):
    """Earth mover's distance to the distribution of all published values at most ``t`` (Li et al. 2007).

    The distance of two values is 1 (``equal``), their distance in the order of the values (``ordered``: numbers, or the
    order of the taxonomy) or the height of their lowest common ancestor (``hierarchical``); all are at most 1. Without
    a ``distance`` numbers are ordered and other values equally far apart. Every distinct number is a value of its own.
    A missing value is the last in order, and hangs below the root.
    """

    title = "t-closeness"

    t: float = parameter(help="largest distance", at_least=0, at_most=1)
    distance: Literal["auto", "equal", "ordered", "hierarchical"] = parameter("auto", help="of two values")

    def kept(self, counts: Counts) -> BoolArray:
        """Which classes are close."""
        return np.asarray(self.distances(counts) <= self.t + ROUNDING)

    def distances(self, counts: Counts) -> FloatArray:
        """Distance of every class."""
        values, classes, whole = counts.values, counts.distributions, counts.whole_distribution
        kind = self._kind(values)
        if kind == "equal":
            return equal_distance(classes, whole)
        if kind == "hierarchical":
            tree = _taxonomy(values)
            return hierarchical_distance(classes, whole, tree, _leaves(values, tree))
        order = _order(counts)
        return ordered_distance(classes[:, order], whole[order])

    def count_rule(self, counts: Counts) -> CountRule | None:
        """A distance to the whole; not along a taxonomy."""
        kind, whole = self._kind(counts.values), counts.whole_distribution
        if kind == "hierarchical":
            return None
        order = _order(counts) if kind == "ordered" else None
        return count_rule(kind, whole, limit=self.t, order=order)

    def _kind(self, values: Sensitive) -> Literal["equal", "ordered", "hierarchical"]:
        if self.distance != "auto":
            return self.distance
        return "ordered" if isinstance(values.attribute, Numeric) else "equal"

    def needs_more_than(self, schema: Schema) -> bool:
        """Whether the distance follows a taxonomy that is not there."""
        if self.column not in schema.names or self.distance in ("auto", "equal"):
            return False
        attribute = schema[self.column]
        ordered = self.distance == "ordered" and isinstance(attribute, Numeric)
        return not ordered and (isinstance(attribute, FreeText) or attribute.hierarchy is None)

    def describe(self, unit: Unit) -> str:
        """One clause."""
        how = "" if self.distance == "auto" else f" ({self.distance} distance)"
        return f"values of {self.column!r} within {self.t:g} of their distribution in the whole release{how}"

    def __str__(self) -> str:
        return f"{self.t:g}-closeness of {self.column!r}"


def _order(counts: Counts) -> NDArray[np.int64]:
    """The values that occur, in their order."""
    used = np.flatnonzero(counts.whole > 0)
    numeric = isinstance(counts.values.attribute, Numeric)
    return used if numeric else used[np.argsort(_ranks(counts.values)[used])]


def _ranks(values: Sensitive) -> NDArray[np.int64]:
    """Place of every value in the order of the taxonomy."""
    if isinstance(values.attribute, FreeText):
        raise ConfigError(f"The column {values.attribute.name!r} has no order: its schema declares text.")
    return _leaves(values, _taxonomy(values))


def _taxonomy(values: Sensitive) -> Hierarchy:
    attribute = values.attribute
    if isinstance(attribute, FreeText) or attribute.hierarchy is None:
        raise ConfigError(f"The column {attribute.name!r} has no taxonomy, which a hierarchical distance needs.")
    tree = attribute.hierarchy
    if isinstance(attribute, Categorical) and attribute.rule is not None:
        tree = _tree_by_rule(attribute.rule, map(str, values.values), attribute.name) or tree
    return tree.with_missing() if values.has_missing else tree


def _tree_by_rule(rule: CodeRule, values: Iterable[str], name: str) -> Hierarchy | None:
    """The taxonomy of the values at the level at which the rule tells them apart."""
    rule = rule.published_at(rule.distinct_at)
    paths = [path for path in (path_of(rule, value) for value in values) if path is not None]
    return bind_codes(rule, paths, name=name) if paths else None


def _leaves(values: Sensitive, tree: Hierarchy) -> NDArray[np.int64]:
    """Leaf of every value; the missing one has the last."""
    found = [tree.codes.get(_label(value), -1) for value in values.values]
    unknown = found.count(-1)
    if unknown:
        raise SchemaError(f"The column {values.attribute.name!r} has {unknown} values its taxonomy does not list.")
    return np.array(found + [tree.n_leaves - 1] * values.has_missing, dtype=np.int64)


def _label(value: Any) -> str:
    """A value as the taxonomy writes it: whole numbers without a decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# ---- Earth mover's distance between distributions of sensitive values (Li, Li & Venkatasubramanian 2007) ---
#
# Rows of ``distributions`` are compared with the one distribution ``whole``.


def equal_distance(distributions: FloatArray, whole: FloatArray) -> FloatArray:
    r"""All values are equally far apart.

    .. math:: \tfrac12 \sum_s |p_s - q_s|
    """
    return np.asarray(np.abs(distributions - whole).sum(axis=1) / 2)


def ordered_distance(distributions: FloatArray, whole: FloatArray) -> FloatArray:
    r"""The m values lie in a row, neighbors 1 / (m - 1) apart.

    .. math:: \frac{1}{m-1} \sum_{s} \Big| \sum_{r \le s} (p_r - q_r) \Big|
    """
    carried = np.cumsum(distributions - whole, axis=1)
    return np.asarray(np.abs(carried).sum(axis=1) / max(len(whole) - 1, 1))


def hierarchical_distance(
    distributions: FloatArray, whole: FloatArray, tree: Hierarchy, leaves: NDArray[np.int64]
) -> FloatArray:
    r"""Two values are as far apart as their lowest common ancestor is high, over the height H of the tree.

    .. math:: \sum_N \frac{height(N)}{H} \min(pos(N), neg(N))

    over the inner nodes N, where pos and neg are what the children of N have too much and too little. ``leaves`` are
    the leaves of the values. The distance is an ultrametric, so the greedy flow is optimal.
    """
    n_nodes = len(tree.labels)
    extra = np.zeros((len(distributions), n_nodes))
    extra[:, leaves] = distributions - whole
    surplus, want = np.zeros_like(extra), np.zeros_like(extra)
    cost = np.zeros(len(distributions))
    for node in range(n_nodes - 1):  # children are numbered before their parents
        moved = np.minimum(surplus[:, node], want[:, node])
        cost += moved * tree.height[node]
        extra[:, node] += surplus[:, node] - want[:, node]
        above = tree.parent[node]
        surplus[:, above] += np.maximum(extra[:, node], 0.0)
        want[:, above] += np.maximum(-extra[:, node], 0.0)
    root = tree.root
    cost += np.minimum(surplus[:, root], want[:, root]) * tree.height[root]
    return np.asarray(cost / max(int(tree.height[root]), 1))
