"""TSP-MHM: a short tour through the records, cut into groups of consecutive records with least SSE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation, farthest_from_mean
from fedanon.anonymizers.microaggregation.orders import closed_tours
from fedanon.data.hierarchy import FloatArray
from fedanon.parameters import parameter


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
    from fedanon.kernels.mhm import optimal_groups

    starts = [farthest_from_mean(points), *rng.integers(len(points), size=tours - 1).tolist()]
    cuts = [optimal_groups(points, tour, k, True) for tour in closed_tours(points, starts)]
    labels, _ = min(cuts, key=lambda cut: float(cut[1]))
    return np.asarray(labels, dtype=np.int64)
