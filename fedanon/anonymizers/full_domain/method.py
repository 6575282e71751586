"""Full-domain generalization: every column at one level for all records, the best combination found exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import KAnonymizer, ReleasePlan
from fedanon.anonymizers.full_domain.lattice import Judgment, LatticeSearch, Level, Node, Objective, column_levels
from fedanon.data.cells import Cells
from fedanon.data.groups import SUPPRESSED, Groups
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import parameter
from fedanon.privacy.base import Rows
from fedanon.privacy.combined import Combined
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.recoding import ColumnRecoder, PerColumn, cells_per_column
from fedanon.types import BoolArray, FloatArray, IndexArray, Rng

MOST_NODES = 2_000_000


@ANONYMIZERS.register("full_domain")
@dataclass(frozen=True, kw_only=True)
class FullDomain(KAnonymizer):
    r"""The generalization lattice of Samarati (2001) and LeFevre et al. (2005), searched for its optimum.

    A node gives every quasi-identifier one level; records in classes that do not satisfy the claim are suppressed, at
    most a share ``suppression`` of all. With :math:`l_c` the mean loss of column c, suppressed records losing all, the
    objective is the mean of the :math:`l_c` ('ncp') or, as in ARX's Loss metric ('arx'),
    :math:`\left(\prod_c (1 + l_c)\right)^{1/m} - 1` with a cell's loss :math:`(leaves - 1) / (all\ leaves - 1)`.
    """

    name = "full_domain"

    suppression: float = parameter(0.05, help="largest share of suppressed records", at_least=0, at_most=1)
    objective: Objective = parameter("ncp", help="what is minimized: the mean NCP, or ARX's Loss metric")
    numeric_levels: int = parameter(
        5,
        help="levels above the values of numeric columns without a taxonomy, each twice as wide",
        at_least=1,
        at_most=20,
    )

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """The best node's cells, and which records are suppressed."""
        levels = [
            column_levels(table, c, objective=self.objective, numeric_levels=self.numeric_levels) for c in table.columns
        ]
        nodes = math.prod(len(column) for column in levels)
        if nodes > MOST_NODES:
            raise ConfigError(
                f"The lattice has {nodes:,} nodes, more than {MOST_NODES:,}: declare fewer quasi-identifiers or levels."
            )
        lattice = _Lattice(self, table, levels)
        search = self._search(lattice.bounds(), lattice.loss)
        best = search.run()
        if best is None:
            raise InfeasibleError(
                f"No combination of levels satisfies the claim with at most a share of {self.suppression:g} suppressed."
            )
        groups = lattice.groups(best)
        notes = (f"Of {nodes:,} combinations of levels {search.judged:,} were judged; the best is {best}.",)
        return ReleasePlan(groups, lattice.cells(best, groups), PerColumn(lattice.recoders(best)), notes)

    def _search(self, bounds: list[FloatArray], judge: Judgment) -> LatticeSearch:
        # a model that compares with all published records may hold again when others are suppressed
        return LatticeSearch(bounds, judge, monotone=not self.required)


class _Lattice:
    """The nodes of a table's lattice and what they lose."""

    def __init__(self, method: FullDomain, table: Table, levels: list[list[Level]]) -> None:
        self._method = method
        self._table = table
        self._levels = levels
        self._distinct = table.codes[table.distinct.first_rows]
        self._weights = table.distinct.sizes
        self._blocks = [
            [level.blocks.astype(np.int64)[self._distinct[:, i]] for level in column] for i, column in enumerate(levels)
        ]
        self._losses = [
            [level.loss[self._distinct[:, i]] * self._weights for level in column] for i, column in enumerate(levels)
        ]
        self._most = math.floor(method.suppression * len(table) + 1e-9)

    def bounds(self) -> list[FloatArray]:
        """What every level of every column loses if nothing is suppressed; the parts of the sum that is minimized."""
        shares = [np.array([loss.sum() for loss in column]) / len(self._table) for column in self._losses]
        return [self._part(share) for share in shares]

    def loss(self, node: Node) -> float | None:
        """The node's loss, suppressed records counting as 1 in every column; None if they are too many."""
        dropped = self._suppressed(node)
        lost = int(self._weights[dropped].sum())
        if lost > self._most:
            return None
        shares = [self._losses[i][level][~dropped].sum() + lost for i, level in enumerate(node)]
        return float(self._part(np.array(shares) / len(self._table)).sum())

    def groups(self, node: Node) -> Groups:
        """The classes of a node, without the suppressed records."""
        labels = np.where(self._suppressed(node), SUPPRESSED, self._classes(node))
        return Groups.from_labels(labels[self._table.distinct.labels])

    def _part(self, share: FloatArray) -> FloatArray:
        """A column's part of the sum: a mean is minimal where the sum is, a product where the sum of logarithms is."""
        return np.log1p(share) if self._method.objective == "arx" else share

    def cells(self, node: Node, groups: Groups) -> dict[str, Cells]:
        """What a node publishes for its classes."""
        return cells_per_column(self._table, groups, self.recoders(node))

    def recoders(self, node: Node) -> dict[str, ColumnRecoder]:
        """How a node recodes every column."""
        return {c.name: self._levels[i][node[i]].recode for i, c in enumerate(self._table.columns)}

    def _suppressed(self, node: Node) -> BoolArray:
        """Which distinct records are in classes that do not satisfy the claim."""
        claim = self._method.claim()
        if isinstance(claim, Combined):
            return self._broken(node, claim)
        if self._table.persons is not None:
            return self._broken(node, Combined(k=KAnonymity(k=self._method.k), models=()))
        classes = self._classes(node)
        return np.asarray(np.bincount(classes, weights=self._weights)[classes] < self._method.k)

    def _broken(self, node: Node, claim: Combined) -> BoolArray:
        """As :meth:`_suppressed`, for people and models beyond k: the rest is judged again until all of it holds."""
        distinct, rows = self._table.distinct, Rows.from_table(self._table)
        classes, dropped = self._classes(node), np.zeros(distinct.count, dtype=bool)
        while not dropped.all():
            groups = Groups.from_labels(np.where(dropped, SUPPRESSED, classes)[distinct.labels])
            satisfied = claim.evaluator(rows, ~groups.suppressed).satisfied(groups, partial(self.cells, node, groups))
            if satisfied.all():
                break
            dropped |= np.append(~satisfied, True)[groups.labels[distinct.first_rows]]
        return dropped

    def _classes(self, node: Node) -> IndexArray:
        """A number for the class of every distinct record."""
        return _numbered([(self._blocks[i][level], self._levels[i][level].count) for i, level in enumerate(node)])


def _numbered(columns: list[tuple[IndexArray, int]]) -> IndexArray:
    """One number for equal rows of block numbers, small enough to count by."""
    number, size = columns[0]
    for blocks, count in columns[1:]:
        number, size = number * count + blocks, size * count
        if size > 4 * len(number):
            distinct, number = np.unique(number, return_inverse=True)
            size = len(distinct)
    return number
