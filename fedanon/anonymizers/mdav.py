"""MDAV microaggregation: numeric records in groups of k, each published as the group's mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Draft, KAnonymizer, Rng
from fedanon.anonymizers.publishing import publish_means
from fedanon.anonymizers.repair import merge_short_groups
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.recoding import NearestGroup
from fedanon.data.spans import points
from fedanon.data.table import Table
from fedanon.privacy.k_anonymity import KAnonymity


@ANONYMIZERS.register("mdav")
@dataclass(frozen=True, kw_only=True)
class Mdav(KAnonymizer):
    """Maximum distance to average vector (Domingo-Ferrer & Torra 2005) on standardised columns.

    While 3k records remain, the record r farthest from their mean and the record s farthest from r each take their
    k - 1 nearest; then one group round the farthest, and the rest.
    """

    name = "mdav"
    truthful = False
    numeric_only = True

    def partition(self, table: Table, rng: Rng) -> NDArray[np.int32]:
        """Group of every row, found in a canonical order of the rows."""
        from fedanon.kernels.mdav import mdav

        canonical = table.distinct.order
        labels = np.empty(len(table), dtype=np.int32)
        labels[canonical] = mdav(standardized(points(table)[canonical]), self.k)
        return labels

    def draft(self, table: Table, rng: Rng) -> Draft:
        """Group means."""
        groups = merge_short_groups(table, Groups.of(self.partition(table, rng)), KAnonymity(k=self.k))
        return Draft(groups, publish_means(table, groups), NearestGroup())


def standardized(values: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1; constant columns become 0."""
    deviation = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
