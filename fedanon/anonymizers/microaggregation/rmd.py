"""RMD: one group of k a step, round the record with the largest robust Mahalanobis distance."""

from __future__ import annotations

from dataclasses import dataclass

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation, rest_together
from fedanon.data.hierarchy import FloatArray
from fedanon.data.robust import whitened


@ANONYMIZERS.register("rmd")
@dataclass(frozen=True, kw_only=True)
class RobustMahalanobis(Microaggregation):
    """Robust Mahalanobis distances choose the next record, Euclidean ones its group (as sdcMicro's 'rmd').

    While 2k records remain, the one with the largest distance to their mean, in the metric of a robust covariance of
    all records (MCD), takes its k - 1 nearest; the rest is the last group. Unlike sdcMicro this also works where the
    covariance is singular: see :func:`fedanon.data.robust.mcd`.
    """

    name = "rmd"

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        from fedanon.kernels.mdav import outermost_first

        return rest_together(outermost_first(points, whitened(points, rng), self.k, 2 * self.k))
