"""Semantic recoding: the records of a rare key combination take the values of the nearest one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng, refuse_few_people
from fedanon.anonymizers.perturbative.base import Columns
from fedanon.anonymizers.perturbative.cell_distances import column_distances
from fedanon.anonymizers.perturbative.key_method import KeyMethod
from fedanon.anonymizers.perturbative.keys import keys_of
from fedanon.anonymizers.perturbative.semantic_merging import merge_rare
from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Claim
from fedanon.data.table import Table
from fedanon.parameters import parameter
from fedanon.privacy.k_anonymity import KAnonymity


@ANONYMIZERS.register("semantic_recoding")
@dataclass(frozen=True, kw_only=True)
class SemanticRecoding(KeyMethod):
    """Gives the rarest key combination the values of the closest one, until k people share each; values change.

    Closeness is the sum over the keys of the distance in their taxonomy or range (Navarro-Arribas & Torra; seed 004).
    k-anonymity is claimed, and verified, if all quasi-identifiers are keys.
    """

    name = "semantic_recoding"
    row_order_matters = False

    k: int = parameter(3, help="minimum number of people who share a key combination", at_least=2)

    def claim(self) -> Claim | None:
        """k-anonymity, where it was reached over all quasi-identifiers."""
        return None if self.columns.strip() else KAnonymity(k=self.k)

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """The keys, rare combinations replaced."""
        refuse_few_people(table, self.k)
        names = self.chosen(table, [column.name for column in table.columns], "quasi-identifiers")
        keys = keys_of(table, current, names)
        first = keys.groups.first_rows
        attributes = {column.name: column.attribute for column in table.columns}
        by_column = [column_distances(current[name].take(first), attributes[name]) for name in names]

        def distances(one: int) -> FloatArray:
            return np.asarray(np.sum([distance(one) for distance in by_column], axis=0))

        takes = merge_rare(keys.people, self.k, distances)
        rows = first[takes[keys.groups.labels]]
        return {name: current[name].take(rows) for name in names}
