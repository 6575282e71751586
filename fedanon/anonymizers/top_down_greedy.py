"""Top-down greedy (TDG): divide a class round its two farthest records while both halves keep k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.clustering import RecordClustering


@ANONYMIZERS.register("tdg")
@dataclass(frozen=True, kw_only=True)
class TopDownGreedy(RecordClustering):
    """Utility-based local recoding (Xu et al. 2006).

    The farthest pair is approached in three rounds; every record goes to the nearer of the two. A side with fewer
    than k takes the nearest records of the other, or the class stays whole, whichever loses less.
    """

    name = "tdg"

    def gather(self, spans: Any, codes: Any, rng: Rng) -> NDArray[np.int32]:
        """Class number of every record."""
        from fedanon.kernels.top_down_greedy import top_down_greedy

        return np.asarray(top_down_greedy(spans, codes, self.k, rng.random(len(codes.flat))))
