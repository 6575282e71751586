"""Plain clusters of the records, the first step of methods that work inside clusters."""

from __future__ import annotations

import numpy as np

from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, join_nearest_group
from fedanon.data.hierarchy import FloatArray


def k_means_clusters(points: FloatArray, count: int, rng: Rng, *, at_least: int) -> Labels:
    """At most ``count`` clusters, numbered 0, 1, ..., of ``at_least`` records each, by k-means from k-means++ centres.

    The records of smaller clusters join the cluster with the nearest mean; if all are smaller, there is one cluster.
    """
    from fedanon.kernels.means import k_means

    centers = points[_spread_out(points, count, rng)]
    labels = np.argmin(_squared_distances(points, centers), axis=1)
    k_means(points, labels, len(centers))
    small = np.bincount(labels, minlength=len(centers)) < at_least
    labels = join_nearest_group(points, np.where(small[labels], -1, labels))
    return np.unique(labels, return_inverse=True)[1]


def _spread_out(points: FloatArray, count: int, rng: Rng) -> list[int]:
    """k-means++ (Arthur & Vassilvitskii 2007): each record drawn with its squared distance to those drawn before."""
    chosen = [int(rng.integers(len(points)))]
    nearest = _squared_distances(points, points[chosen])[:, 0]
    while len(chosen) < count and nearest.sum() > 0:
        chosen.append(int(rng.choice(len(points), p=nearest / nearest.sum())))
        nearest = np.minimum(nearest, _squared_distances(points, points[chosen[-1:]])[:, 0])
    return chosen


def _squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    return np.stack([np.square(points - center).sum(axis=1) for center in centers], axis=1)
