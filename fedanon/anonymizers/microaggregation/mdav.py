"""MDAV: groups of k at opposite ends of the data, from the outside in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation
from fedanon.data.hierarchy import FloatArray


@ANONYMIZERS.register("mdav")
@dataclass(frozen=True, kw_only=True)
class Mdav(Microaggregation):
    """Maximum distance to average vector (Domingo-Ferrer & Torra 2005) on standardised columns.

    While 3k records remain, the record r farthest from their mean and the record s farthest from r each take their
    k - 1 nearest; then one group round the farthest, and the rest.
    """

    name = "mdav"

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        from fedanon.kernels.mdav import mdav

        return np.asarray(mdav(points, self.k), dtype=np.int64)
