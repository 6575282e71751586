"""The generalization lattice: levels of a column, and the search for the best combination of them.

A taxonomy gives a column's levels by its depths. A numeric column without one gets bins of equal width, twice as wide
at each level.

A node of the lattice takes one level per column. Its loss without suppression is the sum of what its columns lose,
known at once and never above its true loss. Nodes are tried in the order of this bound until it reaches the best loss
found, so the answer is exact. Where the rule is monotone, a node that is rejected rejects all finer nodes: as in Flash
(Kohlmayer, Prasser et al. 2012) the boundary is found by bisection along chains, and whole parts of the lattice are
never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.base import own_cells
from fedanon.data.cells import Cells, Intervals, Nodes, cell_losses, whole_range
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.rules import NumberRule
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn, Table
from fedanon.release.recoding import ColumnRecoder
from fedanon.types import FloatArray, IntArray

Objective = Literal["ncp", "arx"]


@dataclass(frozen=True, eq=False)
class Level:
    """One level of a column.

    Parameters
    ----------
    recode : the cells of the codes of a column.
    blocks : number of the cell of each code.
    count : number of different cells.
    loss : loss of publishing each code by its cell, 0 to 1.
    """

    recode: ColumnRecoder
    blocks: IntArray
    count: int
    loss: FloatArray


def column_levels(table: Table, column: CodedColumn, *, objective: Objective, numeric_levels: int) -> list[Level]:
    """The levels of a column from its own values to one cell for all; levels that change nothing are left out."""
    levels: list[Level] = []
    for recode, loss in _recodings(table, column, objective, numeric_levels):
        _, blocks = np.unique(recode(column).keys(), axis=0, return_inverse=True)
        count = int(blocks.max(initial=-1)) + 1
        if not levels or count < levels[-1].count:
            levels.append(Level(recode, blocks.ravel().astype(np.int32), count, loss))
    return levels


def _recodings(
    table: Table, column: CodedColumn, objective: Objective, numeric_levels: int
) -> Iterator[tuple[ColumnRecoder, FloatArray]]:
    def own(new: CodedColumn) -> Cells:
        return own_cells(table, new)

    codes = np.arange(column.size)
    yield own, column.loss(codes, codes)
    attribute = column.attribute
    if not isinstance(attribute, Numeric):
        for level in range(1, int(attribute.hierarchy.height[-1]) + 1):
            yield _node_recoding(table, level), _share(attribute.hierarchy, level, objective)
        return
    if attribute.rule is not None:
        assert column.values is not None
        for level, _ in enumerate(attribute.rule.steps(column.values, attribute.domain)):
            recode = _rule_recoding(table, attribute.rule, level)
            yield recode, cell_losses(recode(column), attribute)
    elif attribute.hierarchy is not None and _spells_numbers(attribute.hierarchy):
        for level in range(1, int(attribute.hierarchy.height[-1])):
            recode = _interval_recoding(table, attribute.hierarchy, level)
            share = _share(attribute.hierarchy, level, objective)[_leaves(attribute.hierarchy, column)]
            yield recode, share if objective == "arx" else cell_losses(recode(column), attribute)
    else:
        for level in range(1, numeric_levels):
            recode = _bin_recoding(table, 2 ** (numeric_levels - level))
            yield recode, cell_losses(recode(column), attribute)
    yield lambda new: whole_range(attribute, new.size), np.ones(column.size)


def _share(hierarchy: Hierarchy, level: int, objective: Objective) -> FloatArray:
    """Loss of every leaf: the share of all leaves its node covers; in ARX's form a leaf alone counts as 0."""
    nodes = hierarchy.at_level(level)
    if objective == "ncp":
        return hierarchy.leaf_loss[nodes]
    return np.asarray((hierarchy.leaf_counts[nodes] - 1) / max(hierarchy.n_leaves - 1, 1), dtype=np.float64)


def _node_recoding(table: Table, level: int) -> ColumnRecoder:
    def recode(new: CodedColumn) -> Cells:
        own = own_cells(table, new)
        assert isinstance(own, Nodes)
        # a missing value that is published as '*' stays so
        at_level = new.hierarchy.at_level(level)
        return Nodes(np.where(own.nodes == new.hierarchy.root, own.nodes, at_level), new.hierarchy)

    return recode


def _bin_recoding(table: Table, n_bins: int) -> ColumnRecoder:
    """Bins of equal width of the declared range; a value on a border belongs to the upper one."""

    def recode(new: CodedColumn) -> Cells:
        attribute = new.attribute
        assert isinstance(attribute, Numeric)
        edges = np.linspace(attribute.low, attribute.high, n_bins + 1)
        assert new.values is not None
        at = np.clip(np.searchsorted(edges, new.values, side="right") - 1, 0, n_bins - 1)
        low, high = edges[at], edges[at + 1]
        if attribute.integer:
            # whole numbers of one bin only: [17, 21] and [22, 26] rather than [17, 21.5] and [21.5, 26]
            low, high = np.ceil(low), np.where(at == n_bins - 1, np.floor(high), np.ceil(high) - 1)
        return _unless_missing(table, new, low, high)

    return recode


def _rule_recoding(table: Table, rule: NumberRule, level: int) -> ColumnRecoder:
    """The months, years or bands that a rule has at a level."""

    def recode(new: CodedColumn) -> Cells:
        attribute = new.attribute
        assert isinstance(attribute, Numeric)
        assert new.values is not None
        return _unless_missing(table, new, *next(islice(rule.steps(new.values, attribute.domain), level, None)))

    return recode


def _interval_recoding(table: Table, hierarchy: Hierarchy, level: int) -> ColumnRecoder:
    """The interval of the numbers below a node of the taxonomy."""
    numbers = np.array([float(label) for label in hierarchy.labels[: hierarchy.n_leaves]])
    nodes = hierarchy.at_level(level)
    low = np.array([numbers[hierarchy.first[v] : hierarchy.last[v] + 1].min() for v in nodes])
    high = np.array([numbers[hierarchy.first[v] : hierarchy.last[v] + 1].max() for v in nodes])

    def recode(new: CodedColumn) -> Cells:
        attribute, leaves = new.attribute, _leaves(hierarchy, new)
        assert isinstance(attribute, Numeric)
        known = leaves >= 0
        return _unless_missing(
            table,
            new,
            np.where(known, np.maximum(low[leaves], attribute.low), attribute.low),
            np.where(known, np.minimum(high[leaves], attribute.high), attribute.high),
        )

    return recode


def _unless_missing(table: Table, column: CodedColumn, low: FloatArray, high: FloatArray) -> Cells:
    """Intervals, with missing values published as they are alone."""
    own = own_cells(table, column)
    assert isinstance(own, Intervals)
    assert column.values is not None
    missing = np.isnan(column.values)
    return Intervals(np.where(missing, own.low, low), np.where(missing, own.high, high))


def _leaves(hierarchy: Hierarchy, column: CodedColumn) -> IntArray:
    """The leaf of every value of a numeric column; -1 where the taxonomy does not list it."""
    assert column.values is not None
    places = {float(label): leaf for leaf, label in enumerate(hierarchy.labels[: hierarchy.n_leaves])}
    return np.array([places.get(value, -1) for value in column.values.tolist()], dtype=np.int32)


def _spells_numbers(hierarchy: Hierarchy) -> bool:
    try:
        return all(np.isfinite(float(label)) for label in hierarchy.labels[: hierarchy.n_leaves])
    except ValueError:
        return False


# ---- The search for the best node ----------------------------------------------------------------

Node = tuple[int, ...]
#: the loss of a node, or None if the rule rejects it
Judgment = Callable[[Node], float | None]
OPEN, ALLOWED, REJECTED = 0, 1, 2


@dataclass
class LatticeSearch:
    """A search over all combinations of levels.

    Parameters
    ----------
    bounds : for every column, what its levels lose at least; the parts of a node's bound add up.
    judge : the true loss of a node, not below its bound; None where it is not allowed.
    monotone : whether what rejects a node rejects every finer one.
    """

    bounds: Sequence[FloatArray]
    judge: Judgment
    monotone: bool
    judged: int = 0
    best: Node | None = None
    least: float = np.inf
    _state: NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        self._state = np.full([len(bound) for bound in self.bounds], OPEN, dtype=np.int8)

    def run(self) -> Node | None:
        """The node that loses least; None if all are rejected."""
        bound = np.sum(np.meshgrid(*self.bounds, indexing="ij"), axis=0)
        order = np.argsort(bound, axis=None, kind="stable")
        for position in order:
            node = tuple(int(level) for level in np.unravel_index(position, bound.shape))
            if bound[node] >= self.least:
                break
            if self._state[node] == OPEN:
                self._bisect(node)
        return self.best

    def _bisect(self, node: Node) -> None:
        """Judge ``node``, or nodes on a chain above it until one shows that it is rejected."""
        chain = self._chain(node) if self.monotone else [node]
        last = len(chain) - 1
        while self._state[node] == OPEN:
            # a node that is allowed says nothing about finer ones: look lower, in the end at the node itself
            last //= 2
            self._judge(chain[last])

    def _chain(self, node: Node) -> list[Node]:
        """From a node to the coarsest, one level at a time, where the bound grows least first."""
        chain, levels = [node], list(node)
        while True:
            steps = [
                (bound[level + 1] - bound[level], column)
                for column, (bound, level) in enumerate(zip(self.bounds, levels, strict=True))
                if level + 1 < len(bound)
            ]
            if not steps:
                return chain
            levels[min(steps)[1]] += 1
            chain.append(tuple(levels))

    def _judge(self, node: Node) -> None:
        if self._state[node] != OPEN:
            return
        self.judged += 1
        loss = self.judge(node)
        if loss is None:
            finer = tuple(slice(0, level + 1) for level in node) if self.monotone else node
            self._state[finer] = REJECTED
            return
        self._state[node] = ALLOWED
        if loss < self.least:
            self.best, self.least = node, loss
