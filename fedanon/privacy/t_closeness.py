"""t-closeness: the sensitive values of a class are distributed about as in the whole release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray, Hierarchy
from fedanon.data.schema import FreeText, Numeric
from fedanon.errors import ConfigError, SchemaError
from fedanon.parameters import parameter
from fedanon.privacy import MODELS
from fedanon.privacy.base import ROUNDING, Mask
from fedanon.privacy.closeness import equal_distance, hierarchical_distance, ordered_distance
from fedanon.privacy.count_rule import CountRule, count_rule
from fedanon.privacy.counts import Counts
from fedanon.privacy.sensitive import Sensitive
from fedanon.privacy.sensitive_model import SensitiveModel


@MODELS.register("t")
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

    def kept(self, counts: Counts) -> Mask:
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

    def describe(self) -> str:
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
    return attribute.hierarchy.with_missing() if values.has_missing else attribute.hierarchy


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
