"""Methods for categories that have an order, that of their taxonomy: rank swapping and microaggregation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Cells, Nodes
from fedanon.data.hierarchy import MISSING
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.fields import parameter
from fedanon.sdc.methods.base import Columns, Perturbative, categorical_names
from fedanon.sdc.methods.rank_methods import rank_swapped
from fedanon.sdc.variables import Part
from fedanon.types import IndexArray, IntArray, Rng


@dataclass(frozen=True, kw_only=True)
class _CategoryRanks(Perturbative):
    """Base: every column by itself; missing values and suppressed cells stay."""

    takes: ClassVar[Part] = "categories"

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Change every column by itself."""
        names = self.chosen(table, categorical_names(table), "categorical quasi-identifiers")
        return {name: self._changed(current[name], rng) for name in names}

    def _changed(self, cells: Cells, rng: Rng) -> Nodes:
        assert isinstance(cells, Nodes)
        tree = cells.hierarchy
        fixed = (cells.nodes == tree.root) | (cells.nodes == tree.codes.get(MISSING, -1))
        rows = np.flatnonzero(~fixed)
        nodes = cells.nodes.copy()
        if len(rows):
            # a node stands where its leaves begin
            nodes[rows] = self.new_nodes(nodes[rows], np.asarray(tree.first)[nodes[rows]], rng)
        return Nodes(nodes, tree)

    @abstractmethod
    def new_nodes(self, nodes: IntArray, place: IntArray, rng: Rng) -> IntArray:
        """Return new nodes for some records, given their place in the order of the taxonomy."""


@ANONYMIZERS.register("category_swapping")
@dataclass(frozen=True, kw_only=True)
class CategorySwapping(_CategoryRanks):
    """Rank swapping of categories: records exchange categories at most P % of the ranks apart; counts are exact.

    Ranks follow the order of the taxonomy's leaves, equal categories at random (Moore 1996 for ordinal data; Morais
    2022, section 4.2.1). Meaningful where that order is.
    """

    name = "category_swapping"

    percent: float = parameter(10.0, help="farthest partner, in percent of the number of rows", at_least=0, at_most=100)

    def new_nodes(self, nodes: IntArray, place: IntArray, rng: Rng) -> IntArray:
        """Swap the nodes in pairs."""
        window = int(len(nodes) * self.percent / 100)
        if window < 1:
            raise InfeasibleError(f"{self.percent:g} % of {len(nodes)} rows is less than one rank: nothing is swapped.")
        # what is swapped are records in the order of their place; equal ones in random order
        order = np.lexsort((rng.random(len(nodes)), place))
        moved = rank_swapped(np.arange(len(nodes), dtype=np.float64), window, rng).astype(np.int64)
        new = np.empty_like(nodes)
        new[order] = nodes[order[moved]]
        return new


@ANONYMIZERS.register("category_microaggregation")
@dataclass(frozen=True, kw_only=True)
class CategoryMicroaggregation(_CategoryRanks):
    """Microaggregation of categories: in the order of the taxonomy, every k records publish their median or mode.

    Of each column alone, at least k records share every published category (Torra 2004). Several columns together may
    still tell a record apart, so nothing is claimed.
    """

    name = "category_microaggregation"

    k: int = parameter(3, help="records that share a published category, at least", at_least=2)
    replace: Literal["median", "mode"] = parameter("median", help="category that is published for a group")

    def new_nodes(self, nodes: IntArray, place: IntArray, rng: Rng) -> IntArray:
        """Publish one category per group of k consecutive records; the last group takes what is left."""
        if len(nodes) < self.k:
            raise InfeasibleError(f"The column has {len(nodes)} known values, fewer than k={self.k}.")
        order = np.lexsort((rng.random(len(nodes)), place))
        count = len(nodes) // self.k
        group = np.minimum(np.arange(len(nodes)) // self.k, count - 1)
        new = np.empty_like(nodes)
        for rows in np.split(order, np.flatnonzero(np.diff(group)) + 1):
            new[rows] = nodes[self._representative(nodes, rows)]
        return new

    def _representative(self, nodes: IntArray, rows: IndexArray) -> int:
        if self.replace == "median":
            return int(rows[(len(rows) - 1) // 2])
        _, first, counts = np.unique(nodes[rows], return_index=True, return_counts=True)
        return int(rows[first[int(np.argmax(counts))]])
