"""GSMS: the groups whose removal leaves least SSE are taken one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.microaggregation.base import Labels, Microaggregation, join_nearest_group
from fedanon.anonymizers.microaggregation.successive import sorted_along
from fedanon.fields import parameter
from fedanon.types import FloatArray, Rng


@ANONYMIZERS.register("gsms")
@dataclass(frozen=True, kw_only=True)
class Gsms(Microaggregation):
    """Group selection by sequential minimization of SSE (Panagiotakis & Tziritas 2013).

    Every record left proposes itself and its k - 1 nearest. Of these, floor(n / k) times, the group is taken that
    minimises its own SSE plus that of all other records left. The last n mod k records join the group with the nearest
    mean.
    """

    name = "gsms"

    dissolve: bool = parameter(
        False, help="then dissolve groups whose records cost less in their nearest groups (GSMS-T2)"
    )

    def gather(self, points: FloatArray, rng: Rng) -> Labels:
        """Group of every record."""
        return gsms_groups(points, self.k, dissolve=self.dissolve)


def gsms_groups(points: FloatArray, k: int, *, dissolve: bool = False) -> Labels:
    """Groups of at least k of the ``points``; ``dissolve`` adds the second phase of TFRP (Chang, Li & Huang 2007)."""
    from fedanon.anonymizers.microaggregation._groups import dissolve_groups
    from fedanon.anonymizers.microaggregation._gsms import gsms

    rows = sorted_along(points)
    labels = np.empty(len(points), dtype=np.int64)
    labels[rows.number] = gsms(*rows, k)
    labels = join_nearest_group(points, labels)
    if dissolve:
        dissolve_groups(points, labels)
    return labels
