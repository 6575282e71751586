"""Invariant PRAM: categories change at random, and the expected counts stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pandas import factorize

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.base import Columns, categorical_names
from fedanon.anonymizers.perturbative.key_method import KeyMethod
from fedanon.anonymizers.perturbative.post_randomization import Transition, post_randomize
from fedanon.anonymizers.perturbative.transitions import invariant_transition
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray, IntArray
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.parameters import parameter


@ANONYMIZERS.register("invariant_pram")
@dataclass(frozen=True, kw_only=True)
class InvariantPram(KeyMethod):
    """PRAM whose matrix is made from the data, so that the expected count of every category stays what it was.

    The diagonal of P is drawn from U(pd, 1); Q inverts P by Bayes' rule; alpha PQ + (1 - alpha) I is applied, within
    every stratum alone where ``strata`` names a column (seed 004; sdcMicro's ``pram``). Counts of several columns
    together are not kept.
    """

    name = "invariant_pram"

    pd: float = parameter(0.8, help="least value on the diagonal of P", at_least=0, at_most=1)
    alpha: float = parameter(0.5, help="amount of change: 0 none, 1 all of PQ", at_least=0, at_most=1)
    strata: str = parameter("", help="column within whose values the counts are kept; it is not changed itself")

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Every column drawn anew, alone, stratum by stratum."""
        fitting = [name for name in categorical_names(table) if name != self.strata]
        names = self.chosen(table, fitting, "categorical quasi-identifiers other than its strata")
        strata = self._strata(table, current)

        def transition(present: IntArray, shares: FloatArray) -> Transition:
            return Transition(present, invariant_transition(shares, rng.uniform(self.pd, 1, len(present)), self.alpha))

        return {name: post_randomize(current[name], strata, transition, rng) for name in names}

    def _strata(self, table: Table, current: Columns) -> Groups:
        if not self.strata:
            return Groups.of(np.zeros(len(table), dtype=np.int32))
        if self.strata in current:
            return Groups.equal_rows(current[self.strata].keys())
        if self.strata not in table.frame:
            raise ConfigError(f"The table has no column {self.strata!r} to take as strata.")
        # missing values form a stratum of their own
        return Groups.of(factorize(table.frame[self.strata], sort=True, use_na_sentinel=False)[0])
