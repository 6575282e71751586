"""PRAM with a given transition matrix: categories change at random, by probabilities the steward states."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.base import Columns, categorical_names
from fedanon.anonymizers.perturbative.key_method import KeyMethod
from fedanon.anonymizers.perturbative.post_randomization import MakeTransition, Transition, post_randomize
from fedanon.anonymizers.perturbative.transition_file import read_transition
from fedanon.anonymizers.perturbative.transitions import even_transition
from fedanon.data.cells import Cells, Nodes
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray, IntArray
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.parameters import parameter


@ANONYMIZERS.register("pram")
@dataclass(frozen=True, kw_only=True)
class Pram(KeyMethod):
    """Each record's category is drawn from the row of a transition matrix that belongs to it.

    The matrix of one column comes from a CSV file (:mod:`~fedanon.anonymizers.perturbative.transition_file`), or has
    ``keep`` on its diagonal and the rest spread evenly over the categories that occur (seed 004, eq. 4.1). Missing
    values and suppressed cells stay. With the matrix known, counts can be estimated back; see ``invariant_pram``.
    """

    name = "pram"

    keep: float = parameter(
        0.8, help="probability that a category stays, unless a matrix is given", at_least=0, at_most=1
    )
    matrix: str = parameter("", help="CSV file with the transition matrix of the one column named")

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Every column drawn anew, alone."""
        names = self.chosen(table, categorical_names(table), "categorical quasi-identifiers")
        if self.matrix and len(names) > 1:
            raise ConfigError(f"A transition matrix belongs to one column; {len(names)} are named.")
        everyone = Groups.of(np.zeros(len(table), dtype=np.int32))
        return {n: post_randomize(current[n], everyone, self._transition(current[n], n), rng) for n in names}

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """Which matrix it was: the file may change later."""
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
