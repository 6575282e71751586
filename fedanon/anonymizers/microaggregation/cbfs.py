"""CBFS: one group of k a step, round the record farthest from the mean of those left."""

from __future__ import annotations

from dataclasses import dataclass

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation, join_nearest_group
from fedanon.data.hierarchy import FloatArray


@ANONYMIZERS.register("cbfs")
@dataclass(frozen=True, kw_only=True)
class Cbfs(Microaggregation):
    """Centroid-based fixed size (Laszlo & Mukherjee 2005).

    While k records remain, the one farthest from their mean takes its k - 1 nearest; the last n mod k records join the
    group with the nearest mean.
    """

    name = "cbfs"

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        from fedanon.kernels.mdav import outermost_first

        return join_nearest_group(points, outermost_first(points, points, self.k, self.k))
