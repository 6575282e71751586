"""Methods that put the records into an order and cut it into groups of consecutive records.

The cut takes every k in succession (simple, pca, clustered_pca) or the groups of k to 2k - 1 with the least SSE (MHM).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.microaggregation.base import Microaggregation, farthest_from_mean, join_nearest_group
from fedanon.fields import parameter
from fedanon.types import FloatArray, IndexArray, Rng

#: directions that projection pursuit tries
DIRECTIONS = 500
#: neighbors of each record that 2-opt tries to link it to, and the most passes over all records
NEIGHBORS, PASSES = 12, 50


@ANONYMIZERS.register("simple")
@dataclass(frozen=True, kw_only=True)
class Simple(Microaggregation):
    """Rows in the order of the file, unsorted (sdcMicro's 'simple'): shows how much sorting gains.

    The one method whose release depends on the order of the rows.
    """

    name = "simple"
    row_order_matters = True

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        return successive_groups(np.arange(len(points)), self.k)


@ANONYMIZERS.register("pca")
@dataclass(frozen=True, kw_only=True)
class Pca(Microaggregation):
    """Records in the order of their first principal component (sdcMicro's 'pca')."""

    name = "pca"

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        return successive_groups(along_first_component(points), self.k)


@ANONYMIZERS.register("pppca")
@dataclass(frozen=True, kw_only=True)
class PursuitPca(Microaggregation):
    """Records in the order of a robust first principal component, found by projection pursuit (sdcMicro's 'pppca').

    Among the directions from the median to (at most 500 of) the records, the one along which the median absolute
    deviation is largest (Croux & Ruiz-Gazen 2005): outliers do not decide it.
    """

    name = "pppca"

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        return successive_groups(along_pursued_component(points, rng), self.k)


@ANONYMIZERS.register("clustered_pca")
@dataclass(frozen=True, kw_only=True)
class ClusteredPca(Microaggregation):
    """k-means clusters first, then the order of the first principal component within each (sdcMicro's 'clustpca').

    Clusters of fewer than k records are given up: their records join the cluster with the nearest mean.
    """

    name = "clustered_pca"

    n_clusters: int = parameter(8, help="number of clusters", at_least=1)

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        clusters = k_means_clusters(points, self.n_clusters, rng, at_least=self.k)
        labels = np.empty(len(points), dtype=np.int64)
        for cluster in np.unique(clusters):
            rows = np.flatnonzero(clusters == cluster)
            groups = successive_groups(along_first_component(points[rows]), self.k)
            labels[rows] = groups * len(np.unique(clusters)) + cluster
        return labels


@ANONYMIZERS.register("tsp_mhm")
@dataclass(frozen=True, kw_only=True)
class TspMhm(Microaggregation):
    """MHM on a traveling salesman's tour (Heaton & Mukherjee 2011): nearest neighbor, 2-opt, best of 2k - 1 cuts.

    A tour has no first record, and one of any 2k - 1 consecutive records begins a group of the best cut, so all of
    them are tried.
    """

    name = "tsp_mhm"

    tours: int = parameter(1, help="number of tours from different first records; the best is kept", at_least=1)

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        return tsp_mhm_groups(points, self.k, rng, tours=self.tours)


@ANONYMIZERS.register("npn_mhm")
@dataclass(frozen=True, kw_only=True)
class NpnMhm(Microaggregation):
    """MHM on the order nearest point next (Domingo-Ferrer et al. 2006), which starts farthest from the mean."""

    name = "npn_mhm"

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        return cut_order(points, nearest_point_next(points, farthest_from_mean(points)), self.k)


@ANONYMIZERS.register("univariate_optimal")
@dataclass(frozen=True, kw_only=True)
class UnivariateOptimal(Microaggregation):
    r"""The least SSE of one column, exactly (Hansen & Mukherjee 2003).

    An optimal partition cuts the sorted values into stretches of k .. 2k - 1, so with c(i, j) the SSE of the values
    i + 1 .. j

    .. math:: f(j) = \min_{k \le j - i < 2k} f(i) + c(i, j), \quad f(0) = 0.

    With several columns it is the best cut of their order along the first principal component, no longer the least of
    all partitions.
    """

    name = "univariate_optimal"

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        return cut_order(points, along_first_component(points), self.k)


# ---- Cutting an order into groups ----------------------------------------------------------------


def successive_groups(order: IndexArray, k: int) -> IndexArray:
    """Every k successive records are a group; the last one also takes the n mod k left over."""
    n = len(order)
    labels = np.empty(n, dtype=np.int64)
    labels[order] = np.minimum(np.arange(n) // k, max(n // k - 1, 0))
    return labels


def cut_order(points: FloatArray, order: IndexArray, k: int) -> IndexArray:
    """Groups of k .. 2k - 1 records that follow each other in ``order``, with least SSE (MHM)."""
    from fedanon.anonymizers.microaggregation._orders import optimal_groups

    labels, _ = optimal_groups(points, order, k, False)
    return np.asarray(labels, dtype=np.int64)


def tsp_mhm_groups(points: FloatArray, k: int, rng: Rng, *, tours: int = 1) -> IndexArray:
    """Groups of k .. 2k - 1 of the n x p ``points`` (n >= k), cut from a short tour.

    The first tour starts at the record farthest from the mean, further ones at records drawn by ``rng``; the cut with
    least SSE is kept.
    """
    from fedanon.anonymizers.microaggregation._orders import optimal_groups

    starts = [farthest_from_mean(points), *rng.integers(len(points), size=tours - 1).tolist()]
    cuts = [optimal_groups(points, tour, k, True) for tour in closed_tours(points, starts)]
    labels, _ = min(cuts, key=lambda cut: float(cut[1]))
    return np.asarray(labels, dtype=np.int64)


# ---- Orders in which neighbors are alike --------------------------------------------------------


class Sorted(NamedTuple):
    """The records sorted along their first principal component, as the kernels of tours expect them."""

    points: FloatArray
    along: FloatArray
    number: IndexArray


def first_component(points: FloatArray) -> FloatArray:
    """Scores of the first principal component of the covariance; its largest loading is positive."""
    centered = points - points.mean(axis=0)
    loadings = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    loadings = loadings * np.sign(loadings[np.argmax(np.abs(loadings))])
    return np.asarray(centered @ loadings)


def along_pursued_component(points: FloatArray, rng: Rng) -> IndexArray:
    """Records in ascending order along the direction of the largest median absolute deviation."""
    centered = points - np.median(points, axis=0)
    lengths = np.sqrt(np.square(centered).sum(axis=1))
    usable = np.flatnonzero(lengths > 0)
    if not len(usable):
        return np.arange(len(points))
    chosen = usable if len(usable) <= DIRECTIONS else np.sort(rng.choice(usable, DIRECTIONS, replace=False))
    directions = centered[chosen] / lengths[chosen, None]
    projected = centered @ directions.T
    deviation = np.median(np.abs(projected - np.median(projected, axis=0)), axis=0)
    return np.asarray(np.argsort(projected[:, int(np.argmax(deviation))], kind="stable"))


def along_first_component(points: FloatArray) -> IndexArray:
    """The order of the records along their first principal component; one column is simply sorted."""
    return np.argsort(first_component(points), kind="stable")


def sorted_along(points: FloatArray) -> Sorted:
    """The records in the order of their first principal component."""
    along = first_component(points)
    number = np.argsort(along, kind="stable")
    return Sorted(np.ascontiguousarray(points[number]), along[number], number)


def nearest_point_next(points: FloatArray, start: int) -> IndexArray:
    """The order in which each record is followed by the nearest not yet visited. Exact, O(n) memory."""
    from fedanon.anonymizers.microaggregation._orders import nearest_next

    rows = sorted_along(points)
    return np.asarray(rows.number[nearest_next(*rows, _place(rows, start))])


def neighbor_lists(points: FloatArray, count: int) -> IndexArray:
    """The ``count`` nearest other records of every record, nearest first, or all if there are fewer."""
    from fedanon.anonymizers.microaggregation._neighbors import nearest_neighbors

    rows = sorted_along(points)
    near = np.empty((len(points), min(count, len(points) - 1)), dtype=np.int64)
    near[rows.number] = rows.number[nearest_neighbors(*rows, near.shape[1])]
    return near


def closed_tours(points: FloatArray, starts: Iterable[int]) -> Iterator[IndexArray]:
    """Short closed tours, one from each start: nearest point next, then 2-opt over neighbor lists."""
    from fedanon.anonymizers.microaggregation._neighbors import nearest_neighbors
    from fedanon.anonymizers.microaggregation._orders import nearest_next, two_opt

    rows = sorted_along(points)
    neighbors = nearest_neighbors(*rows, min(NEIGHBORS, len(points) - 1))
    for start in starts:
        tour = nearest_next(*rows, _place(rows, start))
        two_opt(rows.points, tour, neighbors, PASSES)
        yield rows.number[tour]


def _place(rows: Sorted, record: int) -> int:
    """Where a record lies among the sorted ones."""
    return int(np.flatnonzero(rows.number == record)[0])


# ---- Clusters inside which records are ordered ---------------------------------------------------


def k_means_clusters(points: FloatArray, count: int, rng: Rng, *, at_least: int) -> IndexArray:
    """At most ``count`` clusters, numbered 0, 1, ..., of ``at_least`` records each, by k-means from k-means++ centers.

    The records of smaller clusters join the cluster with the nearest mean; if all are smaller, there is one cluster.
    """
    from fedanon.anonymizers.microaggregation._groups import k_means

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
