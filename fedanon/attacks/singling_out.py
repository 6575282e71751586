"""Singling out: a statement read off the release that is true of exactly one person."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, members_of
from fedanon.attacks.published_predicates import Predicate, predicates
from fedanon.attacks.scene import Scene
from fedanon.parameters import parameter


@ATTACKS.register("singling_out")
@dataclass(frozen=True, kw_only=True)
class SinglingOut(Attack):
    r"""Share of the statements, read off released records, that are true of exactly one original.

    .. math:: \frac1n \sum_q \big[ |\{ x \in X : q(x) \}| = 1 \big]

    A statement q takes a random released record and says what it publishes in ``columns`` columns drawn at random:
    "age in [30, 34], graduate degree, hours-per-week is 45" (multivariate predicates of Giomi et al. 2023; Cohen &
    Nissim 2020). Columns that are not quasi-identifiers are published as they are and count too. Each statement is made
    once. Baseline: the same statements that are true of exactly one among about as many people who are not in the
    release. A detail tells how many single out by their quasi-identifiers alone, all that k-anonymity is about.
    """

    title = "Singling out"
    meaning = "What the release says is true of exactly one person, who can be told apart although not yet named."
    target = "release"

    statements: int = parameter(2000, help="number of statements", at_least=1)
    columns: int = parameter(0, help="columns of a statement; 0 takes all", at_least=0)

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Make statements and count of whom they are true."""
        members = members_of(scene)
        columns = predicates(members.release, [members.table, members.control])
        rows = np.flatnonzero(~members.release.suppressed)
        width = min(self.columns or len(columns), len(columns))
        drawn = [_statement(columns, rows, width, rng) for _ in range(self.statements)]
        # the same statement in other words is no second try
        made = list({_meaning(columns, *statement): statement for statement in drawn}.values())
        quasi = len(members.table.columns)
        counts = np.array([[_true_of(columns, *one, quasi, people) for people in (0, 1)] for one in made])
        inside, outside = (counts == 1).astype(np.float64).transpose(1, 2, 0)
        details = {"columns": float(width), "rate_by_quasi_identifiers_alone": float(inside[0].mean())}
        return Finding.of_tries(inside[1], float(outside[1].mean()), details=details)


Statement = tuple[int, NDArray[np.int64]]


def _statement(columns: list[Predicate], rows: NDArray[np.int64], width: int, rng: np.random.Generator) -> Statement:
    """A released row and the columns that are spoken of."""
    return int(rng.choice(rows)), np.sort(rng.permutation(len(columns))[:width])


def _meaning(columns: list[Predicate], row: int, chosen: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    return tuple((int(c), int(columns[c].kind[row])) for c in chosen)


def _true_of(columns: list[Predicate], row: int, chosen: NDArray[np.int64], quasi: int, people: int) -> list[int]:
    """Number of people of whom it is true what is said of the first ``quasi`` columns, and of whom all is."""
    true = np.ones(len(columns[0].codes[people]), dtype=bool)
    for c in chosen[chosen < quasi]:
        true &= columns[c].mask(row, people)
    of_quasi = int(true.sum())
    for c in chosen[chosen >= quasi]:
        true &= columns[c].mask(row, people)
    return [of_quasi, int(true.sum())]
