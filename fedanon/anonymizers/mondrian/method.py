"""Mondrian: cut the space of quasi-identifiers in two, again and again, while every part keeps k people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import ReleasePlan
from fedanon.anonymizers.guide import GuidedAnonymizer
from fedanon.anonymizers.mondrian.top_down import judge_of_parts, split_while
from fedanon.data.cells import Cells, Nodes
from fedanon.data.groups import Groups
from fedanon.data.spans import points, span_table, tree_table
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.release.recoding import NearestGroup
from fedanon.types import AnyArray, IndexArray, Rng


@ANONYMIZERS.register("mondrian")
@dataclass(frozen=True, kw_only=True)
class Mondrian(GuidedAnonymizer):
    """Top-down partitioning (LeFevre, DeWitt & Ramakrishnan 2006).

    The widest attribute of a region is cut at its median (numeric) or into the children of its node (categorical).
    Children with fewer than k rows are pooled; an attribute that cannot be cut gives way to the next widest. What is
    required beyond k is reached by merging regions, which loses less, or by stopping cuts as k does (``enforce``).

    The ``thesis`` profile follows the code behind the thesis: numeric attributes with a hierarchy are taken as
    categorical, a cut is rejected when any non-empty child has fewer than k rows, and the region's node, not the
    lowest common ancestor of its rows, is published.
    """

    name = "mondrian"

    relaxed: bool = parameter(False, help="rows with equal values may be divided at a cut")
    strict_children: bool = parameter(False, help="reject a cut if any non-empty child has fewer than k rows")
    profile: Literal["default", "thesis"] = parameter("default", help="'thesis' follows the thesis's code")
    enforce: Literal["merge", "stop"] = parameter(
        "merge", help="what is required beyond k: merge the classes that break it, or stop cuts that would make them"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.enforce == "stop" and self.profile == "thesis":
            raise ConfigError("The thesis profile of 'mondrian' stops cuts for k alone; use enforce='merge'.")

    def partition(self, table: Table, rng: Rng) -> AnyArray:
        """Region of every row."""
        from fedanon.anonymizers.mondrian._kernel import mondrian

        table = self.view(table)
        if self.required and self.enforce == "stop":
            return self._constrained(table)
        # a canonical row order makes divided ties, and so the release, independent of the input's order
        canonical = table.distinct.order
        labels = np.empty(len(table), dtype=np.int32)
        labels[canonical] = mondrian(
            span_table(table.columns),
            tree_table(table.columns),
            points(table)[canonical],
            self.k,
            self.relaxed,
            self.strict_children,
        )
        return labels

    def _constrained(self, table: Table) -> IndexArray:
        """Regions in which all monotone requirements hold; the others are left to the repair."""
        from fedanon.anonymizers.mondrian._kernel import propose_cuts

        geometry = span_table(table.columns), tree_table(table.columns), points(table)
        rules = self.k, self.relaxed, self.strict_children
        return split_while(
            table.distinct.order,
            lambda order, start, end, rank: propose_cuts(*geometry, order, start, end, rank, *rules),
            judge_of_parts(table, self.claim()),
            columns=len(table.columns),
            pool=not self.strict_children,
        )

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """The default or the thesis's partition."""
        return super().plan(table, rng) if self.profile == "default" else _thesis_plan(table, self.k)

    def enforce_requirements(self, table: Table, plan: ReleasePlan) -> ReleasePlan:
        """In the thesis profile, on the taxonomies alone."""
        return super().enforce_requirements(table.with_taxonomies() if self.profile == "thesis" else table, plan)


def _thesis_plan(table: Table, k: int) -> ReleasePlan:
    """Regions by taxonomy nodes alone."""
    if table.persons is not None:
        raise ConfigError("The thesis profile of 'mondrian' counts rows; it cannot be used with a person_id column.")
    trees = table.with_taxonomies()
    bare = [column.name for column in trees.columns if column.values is not None]
    if bare:
        raise ConfigError(f"The thesis profile of 'mondrian' needs a taxonomy of each column. None: {', '.join(bare)}.")
    labels = np.empty(len(table), dtype=np.int32)
    published: list[AnyArray] = []
    roots = np.array([column.hierarchy.root for column in trees.columns])
    stack = [(np.arange(len(table)), roots)]
    while stack:
        rows, nodes = stack.pop()
        parts = _thesis_cut(trees, rows, nodes, k)
        if not parts:
            labels[rows] = len(published)
            published.append(nodes)
        stack.extend(parts)
    nodes = np.array(published, dtype=np.int32)
    cells: dict[str, Cells] = {c.name: Nodes(nodes[:, i], c.hierarchy) for i, c in enumerate(trees.columns)}
    return ReleasePlan(Groups(labels, len(published)), cells, NearestGroup())


def _thesis_cut(table: Table, rows: AnyArray, nodes: AnyArray, k: int) -> list[tuple[AnyArray, AnyArray]]:
    """The parts of a region along the first of its widest attributes that can be cut, or none."""
    widths = [c.hierarchy.leaf_loss[nodes[i]] for i, c in enumerate(table.columns)]
    for i in np.argsort(-np.array(widths), kind="stable"):
        tree, node = table.columns[i].hierarchy, nodes[i]
        if node < tree.n_leaves:
            continue
        children = np.flatnonzero(tree.parent[:-1] == node)
        child = children[np.argsort(tree.first[children])]
        slot = np.searchsorted(tree.first[child], table.codes[rows, i], side="right") - 1
        sizes = np.bincount(slot, minlength=len(child))
        if np.all((sizes == 0) | (sizes >= k)):
            return [(rows[slot == s], _replaced(nodes, i, child[s])) for s in np.flatnonzero(sizes)]
    return []


def _replaced(nodes: AnyArray, column: int, node: int) -> AnyArray:
    nodes = nodes.copy()
    nodes[column] = node
    return nodes
