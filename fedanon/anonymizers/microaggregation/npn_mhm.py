"""NPN-MHM: the records in the order nearest point next, cut into groups with least SSE."""

from __future__ import annotations

from dataclasses import dataclass

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation, farthest_from_mean
from fedanon.anonymizers.microaggregation.orders import nearest_point_next
from fedanon.anonymizers.microaggregation.univariate_optimal import cut_order
from fedanon.data.hierarchy import FloatArray


@ANONYMIZERS.register("npn_mhm")
@dataclass(frozen=True, kw_only=True)
class NpnMhm(Microaggregation):
    """MHM on the order nearest point next (Domingo-Ferrer et al. 2006), which starts farthest from the mean."""

    name = "npn_mhm"

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        return cut_order(points, nearest_point_next(points, farthest_from_mean(points)), self.k)
