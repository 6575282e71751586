"""MDAV microaggregation: numeric records in groups of k, each published as the group's mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import KAnonymizer, Rng
from fedanon.anonymizers.publishing import publish_means
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.spans import points
from fedanon.data.table import Table


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

    def publish_groups(self, table: Table, groups: Groups) -> Mapping[str, Cells]:
        """Group means."""
        return publish_means(table, groups)


def standardized(values: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1; constant columns become 0."""
    deviation = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
