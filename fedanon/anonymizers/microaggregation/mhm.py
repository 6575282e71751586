"""TSP-MHM: a short tour through the records, cut into groups of consecutive records with least SSE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation, farthest_from_mean
from fedanon.anonymizers.microaggregation.successive import (
    Order,
    along_first_component,
    closed_tours,
    nearest_point_next,
)
from fedanon.fields import parameter
from fedanon.types import FloatArray, Rng


@ANONYMIZERS.register("tsp_mhm")
@dataclass(frozen=True, kw_only=True)
class TspMhm(Microaggregation):
    """MHM on a travelling salesman's tour (Heaton & Mukherjee 2011): nearest neighbour, 2-opt, best of 2k - 1 cuts.

    A tour has no first record, and one of any 2k - 1 consecutive records begins a group of the best cut, so all of
    them are tried.
    """

    name = "tsp_mhm"

    tours: int = parameter(1, help="tours from different first records, the best kept", at_least=1)

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        return tsp_mhm_groups(points, self.k, rng, tours=self.tours)


def tsp_mhm_groups(points: FloatArray, k: int, rng: Rng, *, tours: int = 1) -> Labels:
    """Groups of k .. 2k - 1 of the n x p ``points`` (n >= k), cut from a short tour.

    The first tour starts at the record farthest from the mean, further ones at records drawn by ``rng``; the cut with
    least SSE is kept.
    """
    from fedanon.anonymizers.microaggregation._orders import optimal_groups

    starts = [farthest_from_mean(points), *rng.integers(len(points), size=tours - 1).tolist()]
    cuts = [optimal_groups(points, tour, k, True) for tour in closed_tours(points, starts)]
    labels, _ = min(cuts, key=lambda cut: float(cut[1]))
    return np.asarray(labels, dtype=np.int64)


# ---- NPN-MHM -------------------------------------------------------------------------------------


@ANONYMIZERS.register("npn_mhm")
@dataclass(frozen=True, kw_only=True)
class NpnMhm(Microaggregation):
    """MHM on the order nearest point next (Domingo-Ferrer et al. 2006), which starts farthest from the mean."""

    name = "npn_mhm"

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        return cut_order(points, nearest_point_next(points, farthest_from_mean(points)), self.k)


# ---- Optimal univariate microaggregation ---------------------------------------------------------


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

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        return cut_order(points, along_first_component(points), self.k)


def cut_order(points: FloatArray, order: Order, k: int) -> Labels:
    """Groups of k .. 2k - 1 records that follow each other in ``order``, with least SSE (MHM)."""
    from fedanon.anonymizers.microaggregation._orders import optimal_groups

    labels, _ = optimal_groups(points, order, k, False)
    return np.asarray(labels, dtype=np.int64)
