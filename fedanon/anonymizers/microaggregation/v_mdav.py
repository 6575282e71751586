"""V-MDAV: MDAV with groups of variable size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation, join_nearest_group
from fedanon.data.hierarchy import FloatArray
from fedanon.parameters import parameter


@ANONYMIZERS.register("v_mdav")
@dataclass(frozen=True, kw_only=True)
class VMdav(Microaggregation):
    r"""Variable-size MDAV (Solanas & Martínez-Ballesté 2006).

    The record farthest from the mean of all takes its k - 1 nearest. The group then takes in its nearest outsider e, up
    to 2k - 1 members, while

    .. math:: d_{in} < \gamma \, d_{out}

    where d_in is the distance of e to the nearest member and d_out that to the nearest other outsider. Fewer than k
    records left over join the group with the nearest mean.
    """

    name = "v_mdav"

    gamma: float = parameter(
        0.2, help="how readily groups grow beyond k: 0 never, 0.2 for scattered and 1.1 for clustered data", at_least=0
    )

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        from fedanon.kernels.v_mdav import v_mdav

        outward = np.argsort(-np.square(points - points.mean(axis=0)).sum(axis=1), kind="stable")
        return join_nearest_group(points, v_mdav(points, outward, self.k, float(self.gamma)))
