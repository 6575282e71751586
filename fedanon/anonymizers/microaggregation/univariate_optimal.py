"""Optimal univariate microaggregation: the shortest path of Hansen & Mukherjee over the sorted values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation
from fedanon.anonymizers.microaggregation.orders import Order, along_first_component
from fedanon.data.hierarchy import FloatArray


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
    from fedanon.kernels.mhm import optimal_groups

    labels, _ = optimal_groups(points, order, k, False)
    return np.asarray(labels, dtype=np.int64)
