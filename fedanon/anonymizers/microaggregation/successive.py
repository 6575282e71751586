"""Successive groups: the records are put into an order, and every k of them in a row are a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation
from fedanon.anonymizers.microaggregation.clusters import k_means_clusters
from fedanon.anonymizers.microaggregation.orders import Order, along_first_component
from fedanon.data.hierarchy import FloatArray
from fedanon.parameters import parameter


@ANONYMIZERS.register("simple")
@dataclass(frozen=True, kw_only=True)
class Simple(Microaggregation):
    """Rows in the order of the file, unsorted (sdcMicro's 'simple'): the yardstick of what sorting gains.

    The one method whose release depends on the order of the rows.
    """

    name = "simple"
    row_order_matters = True

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        return successive_groups(np.arange(len(points)), self.k)


@ANONYMIZERS.register("pca")
@dataclass(frozen=True, kw_only=True)
class Pca(Microaggregation):
    """Records in the order of their first principal component (sdcMicro's 'pca')."""

    name = "pca"

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        return successive_groups(along_first_component(points), self.k)


@ANONYMIZERS.register("clustered_pca")
@dataclass(frozen=True, kw_only=True)
class ClusteredPca(Microaggregation):
    """k-means clusters first, then the order of the first principal component within each (sdcMicro's 'clustpca').

    Clusters of fewer than k records are given up: their records join the cluster with the nearest mean.
    """

    name = "clustered_pca"

    n_clusters: int = parameter(8, help="number of clusters", at_least=1)

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        clusters = k_means_clusters(points, self.n_clusters, rng, at_least=self.k)
        labels = np.empty(len(points), dtype=np.int64)
        for cluster in np.unique(clusters):
            rows = np.flatnonzero(clusters == cluster)
            groups = successive_groups(along_first_component(points[rows]), self.k)
            labels[rows] = groups * len(np.unique(clusters)) + cluster
        return labels


def successive_groups(order: Order, k: int) -> Labels:
    """Every k records in a row are a group; the last takes in the n mod k left over."""
    n = len(order)
    labels = np.empty(n, dtype=np.int64)
    labels[order] = np.minimum(np.arange(n) // k, max(n // k - 1, 0))
    return labels
