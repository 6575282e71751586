"""PRAM, the post-randomization method: categories change at random, by the probabilities of a transition matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas import factorize

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Cells, Nodes
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import MISSING, Hierarchy
from fedanon.data.readers import read_frame
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.sdc.methods.base import Columns, Details, categorical_names
from fedanon.sdc.methods.keys import KeyMethod
from fedanon.types import FloatArray, IntArray, Rng

#: how far the sum of a row may be from one: the rounding of a written matrix, no more
ROW_TOLERANCE = 1e-9


@ANONYMIZERS.register("pram")
@dataclass(frozen=True, kw_only=True)
class Pram(KeyMethod):
    """Draws each record's category from the row of a transition matrix that belongs to it.

    The matrix of one column comes from a CSV file (:func:`read_transition`), or has ``keep`` on its diagonal and the
    rest spread evenly over the categories that occur (Morais 2022, eq. 4.1). Missing values and suppressed cells stay.
    Whoever knows the matrix can estimate the original counts; ``invariant_pram`` keeps them.
    """

    name = "pram"
    takes = "categories"

    keep: float = parameter(
        0.8, help="probability that a category stays, unless a matrix is given", at_least=0, at_most=1
    )
    matrix: str = parameter("", help="CSV file with the transition matrix of the one column named")

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Draw every column anew, by itself."""
        return self.change_with_details(table, current, rng)[0]

    def change_with_details(self, table: Table, current: Columns, rng: Rng) -> tuple[Columns, Details]:
        """Draw every column anew, and return the matrices that were used."""
        names = self.chosen(table, categorical_names(table), "categorical quasi-identifiers")
        if self.matrix and len(names) > 1:
            raise ConfigError(f"A transition matrix belongs to one column; {len(names)} are named.")
        everyone = Groups.from_labels(np.zeros(len(table), dtype=np.int32))
        drawn = {n: post_randomize(current[n], everyone, self._transition(current[n], n), rng) for n in names}
        return _with_matrices(drawn, current)

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """Which matrix was used, since the file may change later."""
        if not self.matrix:
            return ()
        return (f"The transition matrix has SHA-256 {hashlib.sha256(Path(self.matrix).read_bytes()).hexdigest()}.",)

    def _transition(self, cells: Cells, name: str) -> MakeTransition:
        if self.matrix:
            assert isinstance(cells, Nodes)
            given = read_transition(self.matrix, cells.hierarchy, name)
            return lambda *_: given
        return self._even

    def _even(self, present: IntArray, shares: FloatArray) -> Transition:
        return Transition(present, even_transition(np.full(len(present), self.keep)))


@ANONYMIZERS.register("invariant_pram")
@dataclass(frozen=True, kw_only=True)
class InvariantPram(KeyMethod):
    """PRAM whose matrix is made from the data, so that the expected count of every category is kept.

    The diagonal of P is drawn from U(pd, 1); Q inverts P by Bayes' rule; alpha PQ + (1 - alpha) I is applied, within
    each stratum separately if ``strata`` names a column (Morais 2022; sdcMicro's ``pram``). Joint counts of several
    columns are not kept.
    """

    name = "invariant_pram"
    takes = "categories"

    pd: float = parameter(0.8, help="smallest value on the diagonal of P", at_least=0, at_most=1)
    alpha: float = parameter(0.5, help="amount of change, from 0 (none) to 1 (all of PQ)", at_least=0, at_most=1)
    strata: str = parameter("", help="column within whose values counts are kept; it is not changed itself")

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Draw every column anew, by itself, stratum by stratum."""
        return self.change_with_details(table, current, rng)[0]

    def change_with_details(self, table: Table, current: Columns, rng: Rng) -> tuple[Columns, Details]:
        """Draw every column anew, and return the matrices that were used."""
        fitting = [name for name in categorical_names(table) if name != self.strata]
        names = self.chosen(table, fitting, "categorical quasi-identifiers other than its strata")
        strata = self._strata(table, current)

        def transition(present: IntArray, shares: FloatArray) -> Transition:
            return Transition(present, invariant_transition(shares, rng.uniform(self.pd, 1, len(present)), self.alpha))

        drawn = {name: post_randomize(current[name], strata, transition, rng) for name in names}
        return _with_matrices(drawn, current)

    def _strata(self, table: Table, current: Columns) -> Groups:
        if not self.strata:
            return Groups.from_labels(np.zeros(len(table), dtype=np.int32))
        if self.strata in current:
            return Groups.equal_rows(current[self.strata].keys())
        if self.strata not in table.frame:
            raise ConfigError(f"The table has no column {self.strata!r} to use as strata.")
        # missing values form a stratum of their own
        return Groups.from_labels(factorize(table.frame[self.strata], sort=True, use_na_sentinel=False)[0])


# ---- drawing one column anew ---------------------------------------------------------------------


class Transition(NamedTuple):
    """Probabilities between nodes of a taxonomy: row i is where ``nodes[i]`` may go."""

    nodes: IntArray
    matrix: FloatArray


#: from the nodes that occur and their shares to the transition
MakeTransition = Callable[[IntArray, FloatArray], Transition]


class Randomized(NamedTuple):
    """A column drawn anew, and the transitions that were used, one per stratum."""

    cells: Nodes
    transitions: list[Transition]


def post_randomize(cells: Cells, strata: Groups, make: MakeTransition, rng: Rng) -> Randomized:
    """Draw the column anew, stratum by stratum; missing values and suppressed cells stay as they are."""
    assert isinstance(cells, Nodes)
    nodes, used = cells.nodes.copy(), []
    fixed = (nodes == cells.hierarchy.root) | (nodes == cells.hierarchy.codes.get(MISSING, -1))
    for stratum in range(strata.count):
        rows = np.flatnonzero((strata.labels == stratum) & ~fixed)
        if rows.size:
            nodes[rows], transition = _drawn(nodes[rows], make, rng)
            used.append(transition)
    return Randomized(Nodes(nodes, cells.hierarchy), used)


def _with_matrices(drawn: dict[str, Randomized], before: Columns) -> tuple[Columns, Details]:
    """Return the columns, and by the names of the categories their transition matrices and counts."""
    matrices, counts = {}, {}
    for name, column in drawn.items():
        labels = column.cells.hierarchy.labels
        matrices[name] = [
            {"categories": [labels[node] for node in used.nodes.tolist()], "matrix": used.matrix.tolist()}
            for used in column.transitions
        ]
        had = before[name]
        assert isinstance(had, Nodes)
        sizes = [np.bincount(nodes, minlength=len(labels)) for nodes in (had.nodes, column.cells.nodes)]
        present = np.flatnonzero(sizes[0] + sizes[1])
        counts[name] = {labels[node]: [int(size[node]) for size in sizes] for node in present.tolist()}
    details = {"transitions": matrices, "counts": counts}
    return {name: column.cells for name, column in drawn.items()}, details


def _drawn(nodes: IntArray, make: MakeTransition, rng: Rng) -> tuple[IntArray, Transition]:
    present, counts = np.unique(nodes, return_counts=True)
    transition = make(present, counts / len(nodes))
    state = {node: i for i, node in enumerate(transition.nodes.tolist())}
    absent = sum(node not in state for node in present.tolist())
    if absent:
        raise ConfigError(f"The transition matrix lacks {absent} categories that the column has.")
    states = np.array([state[node] for node in nodes.tolist()], dtype=np.int32)
    return transition.nodes[draw(states, transition.matrix, rng)], transition


# ---- transition matrices -------------------------------------------------------------------------


def even_transition(diagonal: FloatArray) -> FloatArray:
    """Make category i stay with probability ``diagonal[i]``, and spread the rest evenly over the others."""
    size = len(diagonal)
    if size == 1:
        return np.ones((1, 1))
    spread = np.repeat(((1 - diagonal) / (size - 1))[:, None], size, axis=1)
    np.fill_diagonal(spread, diagonal)
    return spread


def invariant_transition(shares: FloatArray, diagonal: FloatArray, alpha: float) -> FloatArray:
    r"""Return a matrix that keeps the expected counts of the categories.

    P has the given diagonal (:func:`even_transition`); Q is its inversion by Bayes' rule; R = PQ leaves the shares
    :math:`\pi` as they are, and so does its mixture with the identity (Gouweleeuw et al. 1998; two-stage PRAM):

    .. math:: q_{ij} = \frac{\pi_j p_{ji}}{\sum_l \pi_l p_{li}}, \qquad \alpha P Q + (1 - \alpha) I

    Parameters
    ----------
    shares : of the categories, all above 0.
    diagonal : the diagonal of P.
    alpha : 0 changes nothing, 1 is R itself.
    """
    forth = even_transition(diagonal)
    joint = shares[:, None] * forth
    back = (joint / joint.sum(axis=0)).T
    return np.asarray(alpha * (forth @ back) + (1 - alpha) * np.eye(len(shares)))


def refuse_invalid_transition(matrix: FloatArray) -> None:
    """Raise ConfigError unless ``matrix`` is square, holds probabilities, and its rows sum to one."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ConfigError("A transition matrix needs as many rows as columns.")
    outside = int((~((matrix >= 0) & (matrix <= 1))).sum())
    if outside:
        raise ConfigError(f"The transition matrix has {outside} entries that are not probabilities from 0 to 1.")
    off = int((np.abs(matrix.sum(axis=1) - 1) > ROW_TOLERANCE).sum())
    if off:
        raise ConfigError(f"The transition matrix has {off} rows that do not sum to one.")


def draw(states: IntArray, matrix: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a new state for every state, by the probabilities of its row."""
    steps = matrix.cumsum(axis=1)
    # divided by the last sum, so that rounding never reaches a state of probability 0
    steps /= steps[:, -1:]
    chance = rng.random(len(states))
    drawn = np.empty(len(states), dtype=np.int32)
    for state in np.unique(states):
        rows = states == state
        drawn[rows] = np.searchsorted(steps[state], chance[rows], side="right")
    return drawn


def read_transition(path: str | Path, hierarchy: Hierarchy, column: str) -> Transition:
    """Read and check the matrix of ``column``, whose taxonomy is ``hierarchy``, from a CSV file.

    The header names the categories drawn, the first field of a line the category a record has::

        from,F,M
        F,0.99,0.01
        M,0,1
    """
    frame = read_frame(path)
    labels = [str(label) for label in frame.columns[1:]]
    unknown = sum(label not in hierarchy.nodes for label in labels)
    if unknown:
        raise ConfigError(f"The transition matrix names {unknown} categories that the column {column!r} does not have.")
    if frame.iloc[:, 0].tolist() != labels:
        raise ConfigError("The lines of a transition matrix must name the categories of its header, in the same order.")
    matrix = frame.iloc[:, 1:].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    refuse_invalid_transition(matrix)
    return Transition(np.array([hierarchy.nodes[label] for label in labels], dtype=np.int32), matrix)
