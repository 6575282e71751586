"""The base of microaggregation: a partition of standardized records, published as group means."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers.base import KAnonymizer, publish_means
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.spans import points
from fedanon.data.table import Table
from fedanon.types import FloatArray, IndexArray, Rng


@dataclass(frozen=True, kw_only=True)
class Microaggregation(KAnonymizer):
    r"""Base of the family: choose groups of at least k records so that SSE is small.

    .. math:: SSE = \sum_{g} \sum_{i \in g} \lVert z_i - \bar z_g \rVert^2

    over the standardized records z (Domingo-Ferrer & Mateo-Sanz 2002). A method implements only :meth:`gather`.
    """

    truthful = False
    numeric_only = True

    def partition(self, table: Table, rng: Rng) -> IndexArray:
        """Group of every row, found in a canonical order of the rows unless the method depends on that of the file."""
        canonical = self.order_rows(table)
        labels = np.empty(len(table), dtype=np.int64)
        labels[canonical] = self.gather(self.scale_columns(points(table)[canonical]), rng)
        return labels

    def order_rows(self, table: Table) -> IndexArray:
        """The order in which records are looked at, which decides between equal distances."""
        return np.arange(len(table)) if self.row_order_matters else table.distinct.order

    def scale_columns(self, values: FloatArray) -> FloatArray:
        """The records as distances see them: standardized, unless a method says otherwise."""
        return standardized(values)

    @abstractmethod
    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record, given the standardized records; each group with at least k of them."""

    def publish_groups(self, table: Table, groups: Groups) -> Mapping[str, Cells]:
        """Group means."""
        return publish_means(table, groups)


def standardized(values: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1; constant columns become 0."""
    deviation = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def farthest_from_mean(points: FloatArray) -> int:
    """The record farthest from the mean of all; the first of equals."""
    return int(np.argmax(np.square(points - points.mean(axis=0)).sum(axis=1)))


def join_nearest_group(points: FloatArray, labels: IndexArray) -> IndexArray:
    """The records without a group (-1) join the one with the nearest mean."""
    from fedanon.anonymizers.microaggregation._groups import join_nearest

    if labels.max() < 0:
        return np.zeros_like(labels)
    join_nearest(points, labels)
    return labels


def rest_together(labels: IndexArray) -> IndexArray:
    """The records without a group (-1) form the last one."""
    return np.where(labels < 0, labels.max() + 1, labels)
