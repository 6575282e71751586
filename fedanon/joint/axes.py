"""Axes: every quasi-identifier as a line of integer bins, in a form that the server may have too: integers only.

A numeric column has one bin per value if it counts few whole numbers, else equal bins of its declared range, and a last
bin for missing values. A categorical column has one bin per leaf of its taxonomy, in depth-first order, so that every
taxonomy node is a range of bins. A rule for codes lists all of them, as fine as :data:`MOST_CODES` allow, so that codes
that no node has seen have their bin too. Axes follow from the schema alone: they are the same at every node, whatever
its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import MISSING, Hierarchy
from fedanon.data.rules import CodeRule, bind_codes
from fedanon.data.schema import Categorical, Numeric, Schema
from fedanon.data.table import Table
from fedanon.errors import UpdateRejectedError
from fedanon.types import FloatArray, IntArray

#: number of bins of a numeric column that has more than a few whole numbers as values
N_BINS = 1024
#: the most buckets of a column in one answer
MOST_BUCKETS = 128
MAX_NODES = 2_000_000
#: the most bins of a column whose codes are known by a rule; finer ones share the bin of what they lie below
MOST_CODES = 20_000
NUMERIC, TAXONOMY = 0, 1


@dataclass(frozen=True, eq=False)
class Axis:
    """One quasi-identifier.

    Parameters
    ----------
    n_bins : number of bins, including the one for missing values.
    unit : width of a single bin: 0 where it is one value, 1 where it is an interval.
    missing : the bin of missing values, or -1; a cell that holds it publishes everything.
    parent, first, last : the taxonomy (see :class:`~fedanon.data.hierarchy.Hierarchy`), or None.
    weight : how much its loss counts beside that of other axes; the server's own, it does not travel.
    """

    n_bins: int
    unit: int
    missing: int
    parent: IntArray | None = None
    first: IntArray | None = None
    last: IntArray | None = None
    weight: float = 1.0

    @cached_property
    def tree(self) -> Hierarchy | None:
        """The taxonomy without its labels."""
        if self.parent is None or self.first is None or self.last is None:
            return None
        size = len(self.parent)
        return Hierarchy(("",) * size, self.parent, self.first, self.last, np.zeros(size, dtype=np.int32))

    def loss(self, low: NDArray[Any], high: NDArray[Any]) -> FloatArray:
        """NCP of publishing the bins low..high (Xu et al. 2006), elementwise, times the weight."""
        if self.tree is None:
            widest = max(self.n_bins - 2 + self.unit, 1)
            loss = np.asarray((high - low + self.unit) / widest, dtype=np.float64)
        else:
            loss = self.tree.leaf_loss[self.tree.common_ancestor(low, high)]
        return self.weight * np.where((low <= self.missing) & (high >= self.missing), 1.0, loss)

    def to_array(self) -> IntArray:
        """For the wire."""
        if self.parent is None or self.first is None or self.last is None:
            return np.array([NUMERIC, self.n_bins, self.unit, self.missing], dtype=np.int32)
        head = [TAXONOMY, self.n_bins, self.unit, self.missing]
        return np.concatenate([head, self.parent, self.first, self.last]).astype(np.int32)

    @classmethod
    def from_array(cls, array: NDArray[Any]) -> Axis:
        """From the wire, checked; what no schema can mean is rejected."""
        if array.ndim != 1 or len(array) < 4 or array.dtype != np.int32:
            raise UpdateRejectedError("its axes cannot be read")
        kind, n_bins, unit, missing = (int(value) for value in array[:4])
        rest = array[4:]
        if not (1 <= n_bins <= MAX_NODES and unit in (0, 1) and -1 <= missing < n_bins and len(rest) % 3 == 0):
            raise UpdateRejectedError("its axes are out of bounds")
        if kind == NUMERIC and len(rest) == 0:
            return cls(n_bins, unit, missing)
        parent, first, last = rest.reshape(3, -1)
        _check_tree(parent, first, last, n_bins)
        return cls(n_bins, unit, missing, parent, first, last)


def _check_tree(parent: IntArray, first: IntArray, last: IntArray, n_leaves: int) -> None:
    """Reject taxonomies unless children are numbered before parents and the root is last, so that climbing ends."""
    size = len(parent)
    climbs = size > n_leaves and parent[-1] == size - 1 and bool((parent[:-1] > np.arange(size - 1)).all())
    if not (climbs and (parent < size).all() and (first[-1], last[-1]) == (0, n_leaves - 1)):
        raise UpdateRejectedError("its taxonomies are not trees")
    inside = (first >= 0) & (first <= last) & (last < n_leaves)
    nested = (first[parent] <= first) & (last[parent] >= last)
    leaves = np.arange(n_leaves)
    if not ((inside & nested).all() and (first[:n_leaves] == leaves).all() and (last[:n_leaves] == leaves).all()):
        raise UpdateRejectedError("its taxonomies are not trees")


def make_axes(schema: Schema) -> list[Axis]:
    """The axes of a schema's quasi-identifiers, in order."""
    return [
        _numeric_axis(a) if isinstance(a, Numeric) else _taxonomy_axis(_taxonomy(a)) for a in schema.quasi_identifiers
    ]


def _taxonomy(attribute: Categorical) -> Hierarchy:
    return attribute.hierarchy if attribute.rule is None else _listed(attribute.rule)


@lru_cache(maxsize=64)
def _listed(rule: CodeRule) -> Hierarchy:
    """The taxonomy of all codes of a rule, with a leaf for missing values, whether or not a node has any."""
    return bind_codes(rule, rule.list_paths(MOST_CODES), name=rule.type_name).with_missing()


def list_codes(table: Table) -> Table:
    """The table with columns whose rules list all codes; each value is the listed code that it is or lies below."""
    columns, codes = list(table.columns), table.codes.copy()
    for i, column in enumerate(columns):
        attribute = column.attribute
        if not isinstance(attribute, Categorical) or attribute.rule is None:
            continue
        tree = _listed(attribute.rule)
        if attribute.hierarchy is tree:
            continue
        paths = attribute.hierarchy.paths()
        known = [next(tree.codes[label] for label in path if label in tree.codes) for path in paths]
        codes[:, i] = np.array(known, dtype=np.int32)[codes[:, i]]
        columns[i] = replace(column, attribute=replace(attribute, hierarchy=tree))
    if tuple(columns) == table.columns:
        return table
    schema = table.schema.replacing(*(column.attribute for column in columns))
    return replace(table, schema=schema, columns=tuple(columns), codes=codes)


def _numeric_axis(attribute: Numeric) -> Axis:
    count = count_values(attribute)
    bins = count or N_BINS
    return Axis(bins + 1, 0 if count else 1, bins)


def count_values(attribute: Numeric) -> int:
    """Number of values of a column that counts few whole numbers; 0 for any other column."""
    count = int(np.floor(attribute.high) - np.ceil(attribute.low)) + 1
    return count if attribute.integer and 1 <= count <= N_BINS else 0


def _taxonomy_axis(tree: Hierarchy) -> Axis:
    return Axis(tree.n_leaves, 0, tree.codes.get(MISSING, -1), tree.parent, tree.first, tree.last)


def bin_edges(attribute: Numeric) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest value of each bin of a numeric column, without the bin of missing values."""
    count = count_values(attribute)
    if count:
        values = np.ceil(attribute.low) + np.arange(count, dtype=np.float64)
        return values, values
    ends = np.linspace(attribute.low, attribute.high, N_BINS + 1)
    return ends[:-1], ends[1:]


def bin_rows(table: Table) -> IntArray:
    """The bin of every row in every quasi-identifier."""
    bins = table.codes.copy()
    for i, column in enumerate(table.columns):
        if column.values is not None:
            assert isinstance(column.attribute, Numeric)
            bins[:, i] = _numeric_bins(column.attribute, column.values)[table.codes[:, i]]
    return bins


def _numeric_bins(attribute: Numeric, values: FloatArray) -> IntArray:
    lowest, _ = bin_edges(attribute)
    found = np.searchsorted(lowest, values, side="right") - 1
    return np.where(np.isnan(values), len(lowest), np.clip(found, 0, len(lowest) - 1)).astype(np.int32)


@lru_cache(maxsize=65536)
def bucket_starts(axis: Axis, low: int, high: int, grain: int) -> IntArray:
    """First bin of each of the buckets that the bins low..high are counted in.

    Buckets are single bins if there are at most ``grain``. Otherwise a taxonomy is counted by the children of the
    lowest node over all bins, unless there are too many; anything else in ``grain`` parts of equal length.
    """
    length = high - low + 1
    if length <= grain:
        return np.arange(low, high + 1, dtype=np.int32)
    if axis.tree is not None and grain > 1:
        children = _children(axis.tree, low, high)
        if len(children) <= MOST_BUCKETS:
            return children
    return (low + -(-np.arange(grain) * length // grain)).astype(np.int32)


def _children(tree: Hierarchy, low: int, high: int) -> IntArray:
    node = tree.common_ancestor(np.array([low]), np.array([high]))[0]
    below = np.flatnonzero(tree.parent[:-1] == node)
    firsts = np.sort(tree.first[below][(tree.last[below] >= low) & (tree.first[below] <= high)])
    firsts[0] = low
    return firsts.astype(np.int32)


def box_losses(axes: Sequence[Axis], low: NDArray[Any], high: NDArray[Any]) -> FloatArray:
    """NCP of every box along every axis."""
    return np.column_stack([axis.loss(low[:, i], high[:, i]) for i, axis in enumerate(axes)])
