"""Threshold suppression: one key is suppressed in the records whose individual risk is too high."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.perturbative.base import Columns
from fedanon.anonymizers.perturbative.key_method import KeyMethod
from fedanon.anonymizers.perturbative.keys import keys_of, person_shares, sums
from fedanon.anonymizers.perturbative.stars import suppress
from fedanon.anonymizers.perturbative.suppressions import wildcard_people
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.parameters import parameter


@ANONYMIZERS.register("threshold_suppression")
@dataclass(frozen=True, kw_only=True)
class ThresholdSuppression(KeyMethod):
    """Suppresses one key of every record whose risk 1/F exceeds a threshold (seed 004; sdcMicro's ``localSupp``).

    F counts the people whose keys agree with the record's, all quasi-identifiers being keys and '*' agreeing with any
    value; where the schema names a weight, it is the sum of the weights, the people of the population (seed 004, eq.
    3.6). The key is the column named, or the one with most values. The risk is not computed again afterwards.
    """

    name = "threshold_suppression"
    truthful = True
    row_order_matters = False

    threshold: float = parameter(0.15, help="suppress where the risk is above this", at_least=0, at_most=1)

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """The key, suppressed in the records at risk."""
        name = self._key(table, current)
        risky = self.risks(table, current) > self.threshold
        attribute = next(column.attribute for column in table.columns if column.name == name)
        return {name: suppress(current[name], attribute, risky)} if risky.any() else {}

    def risks(self, table: Table, current: Columns) -> FloatArray:
        """Individual risk 1/F of every record."""
        keys = keys_of(table, current, [column.name for column in table.columns])
        people = person_shares(table) * (1.0 if table.weights is None else table.weights)
        counted = wildcard_people(keys.codes, sums(keys.groups.labels, people))
        return np.asarray(1 / counted[keys.groups.labels])

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """How many records are still above the threshold."""
        above = [int((self.risks(table, columns) > self.threshold).sum()) for columns in (before, after)]
        return (f"Records with a risk above {self.threshold:g}: {above[0]} before, {above[1]} after.",)

    def _key(self, table: Table, current: Columns) -> str:
        names = self.chosen(table, [column.name for column in table.columns], "one quasi-identifier")
        if self.columns.strip() and len(names) > 1:
            raise ConfigError(f"The method {self.name!r} suppresses one key; {len(names)} are named.")
        return max(names, key=lambda name: Groups.equal_rows(current[name].keys()).count)
