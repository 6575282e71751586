"""Downcoding: a generalized cell is replaced by a finer one, learned from the rest of the release.

Knows: the release alone. Does: learns from the records that publish something finer how it goes with the columns that
are published as they are, and guesses the child of every generalized node. Judged by: the share of children guessed
right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.attacks.sensitive_values import values_of
from fedanon.data.cells import Nodes
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.errors import NotApplicableError
from fedanon.metrics.published import leaf_codes
from fedanon.types import FloatArray, IntArray


@ATTACKS.register("downcoding")
@dataclass(frozen=True, kw_only=True)
class Downcoding(Attack):
    r"""Share of the generalized categorical cells that are replaced by the right child of the published node.

    The attacker has the release alone (after Cohen 2022). Records that publish column j below a node v show how its
    children go with the columns that are published as they are; naive Bayes gives the chance :math:`p_{rc}` of child c
    for each record r that publishes v itself, and the likeliest child is guessed. Baseline: the child that is most
    common in the release, for every record.

    The detail ``rate_if_minimal`` adds what is known if cells are the smallest that cover their class: its records R
    are then not all below one child, so

    .. math:: P(c \mid r) = \frac{p_{rc} - \prod_{s \in R} p_{sc}}{1 - \sum_d \prod_{s \in R} p_{sd}}
    """

    title = "Downcoding"
    meaning = "Cells are brought back to a finer level than the one that was published."
    target = "release"

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Guess the child of every generalized cell."""
        guesses = list(_guess_children(context))
        if not guesses:
            raise NotApplicableError("The release publishes no generalized categorical cell.")
        hits, minimal, prior, classes = (np.concatenate(part) for part in zip(*guesses, strict=True))
        cells = int((~context.release.suppressed).sum()) * len(context.release.cells)
        details = {"rate_if_minimal": float(minimal.mean()), "generalized_cells": len(hits) / cells}
        return Finding.from_tries(hits, float(prior.mean()), clusters=classes, details=details)


def _guess_children(context: AttackContext) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, IntArray]]:
    """Yield per published node: hits, hits of an attacker who relies on minimality, hits of the prior, and classes."""
    release = context.release
    rows = np.flatnonzero(~release.suppressed)
    evidence = [
        values_of([release.passthrough], release.schema, str(name))[0][0][rows] for name in release.passthrough.columns
    ]
    for column, below in enumerate(context.table.columns):
        cells = release.cells[below.name]
        if not isinstance(cells, Nodes):
            continue
        node = cells.nodes[release.groups.labels[rows]]
        leaf = leaf_codes(below, cells.hierarchy)[context.table.codes[rows, column]]
        for task in _tasks(cells.hierarchy, node):
            classes = release.classes.labels[rows[task.asked]]
            chances = child_chances(evidence, task.known, task.child[task.known], task.asked, len(task.children))
            true, prior = task.child_of(leaf[task.asked]), np.broadcast_to(task.prior(), chances.shape)
            yield _hits(chances, true), _hits(not_all_alike(chances, classes), true), _hits(prior, true), classes


@dataclass(frozen=True, eq=False)
class _Task:
    """One node of one column: which records publish it (asked), and which publish something below it (known)."""

    tree: Hierarchy
    node: int
    children: IntArray
    child: IntArray
    asked: NDArray[np.int64]
    known: NDArray[np.int64]

    def child_of(self, leaf: IntArray) -> IntArray:
        """Return the number of the child above each leaf, -1 for leaves that are not below the node."""
        inside = (leaf >= self.tree.first[self.node]) & (leaf <= self.tree.last[self.node])
        return np.where(inside, np.searchsorted(self.tree.first[self.children], leaf, side="right") - 1, -1)

    def prior(self) -> FloatArray:
        """Count each child in the release; if none is published, count its leaves."""
        counts = np.bincount(self.child[self.known], minlength=len(self.children)).astype(np.float64)
        return counts if counts.any() else self.tree.leaf_counts[self.children].astype(np.float64)


def _tasks(tree: Hierarchy, node: IntArray) -> Iterator[_Task]:
    """Yield a task for every node that is published and has several children."""
    for wanted in np.unique(node[node >= tree.n_leaves]).tolist():
        children = np.flatnonzero(tree.parent[:-1] == wanted).astype(np.int32)
        children = children[np.argsort(tree.first[children])]
        if len(children) < 2:
            continue
        below = (tree.first[node] >= tree.first[wanted]) & (tree.last[node] <= tree.last[wanted]) & (node != wanted)
        child = np.searchsorted(tree.first[children], tree.first[node], side="right").astype(np.int32) - np.int32(1)
        yield _Task(tree, wanted, children, child, np.flatnonzero(node == wanted), np.flatnonzero(below))


def not_all_alike(chances: FloatArray, classes: NDArray[np.int32]) -> FloatArray:
    """Update the chances of each record, given that the records of a class are not all of one kind."""
    groups = Groups.from_labels(classes)
    alike = np.exp(groups.total(np.log(np.maximum(chances, 1e-300))))
    possible = 1 - alike.sum(axis=1)
    # a single record, or near certainty that all are alike: the knowledge cannot be used
    usable = (groups.sizes > 1) & (possible > 1e-9)
    rest = (chances - alike[groups.labels]) / np.where(usable, possible, 1.0)[groups.labels, None]
    return np.where(usable[groups.labels, None], rest, chances)


def _hits(chances: FloatArray, true: IntArray) -> FloatArray:
    """Compute the chance that the likeliest kind, drawn where several are, is the true one."""
    best = chances >= chances.max(axis=1, keepdims=True)
    own = best[np.arange(len(best)), true] & (true >= 0)
    return np.asarray(own / best.sum(axis=1))


def child_chances(
    evidence: Sequence[IntArray],
    known: NDArray[np.int64],
    kind: IntArray,
    asked: NDArray[np.int64],
    kinds: int,
) -> FloatArray:
    r"""Compute by naive Bayes the chance of every kind for the records ``asked``.

    .. math:: P(c \mid x) \propto (n_c + 1) \prod_j \frac{n_{c x_j} + 1}{n_c + D_j}

    with :math:`n_c` known records of kind c, :math:`n_{cx}` of them with value x in column j, which has :math:`D_j`
    values (Laplace's smoothing).

    Parameters
    ----------
    evidence : per column, the number of its value in each record.
    known, kind : records whose kind is known, and their kinds.
    asked : records whose kind is guessed.
    kinds : number of kinds.
    """
    counts = np.bincount(kind, minlength=kinds).astype(np.float64)
    score = np.tile(np.log(counts + 1), (len(asked), 1))
    for codes in evidence:
        size = int(codes.max()) + 1
        pairs = np.bincount(kind.astype(np.int64) * size + codes[known], minlength=kinds * size).reshape(kinds, size)
        likely = np.log(pairs + 1) - np.log(counts + size)[:, None]
        score += likely[:, codes[asked]].T
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(score / score.sum(axis=1, keepdims=True))
