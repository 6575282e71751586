"""Coordinates: areas that hold k records, and values smoothed over their neighborhood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.sdc.methods.conditional import ConditionalPerturbation
from fedanon.sdc.methods.numeric import NumericPerturbation, Selection
from fedanon.sdc.methods.projections import standardized
from fedanon.types import FloatArray, IndexArray, Rng

#: how many distances are held in memory at once
_CHUNK = 4_000_000


def areas(points: FloatArray, k: int) -> list[IndexArray]:
    """Divide points into areas of k to 2k - 1: halves along the longer side, equal points apart at random order."""
    found: list[IndexArray] = []
    waiting = [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        if len(rows) < 2 * k:
            found.append(rows)
            continue
        side = int(np.argmax(np.ptp(points[rows], axis=0)))
        order = rows[np.argsort(points[rows, side], kind="stable")]
        waiting += [order[: len(rows) // 2], order[len(rows) // 2 :]]
    return found


@ANONYMIZERS.register("area_centers")
@dataclass(frozen=True, kw_only=True)
class AreaCenters(NumericPerturbation):
    """Publishes coordinates as the center of an area that holds at least k records.

    The plane is halved at the median along its longer side until an area holds fewer than 2k records. At least k
    records share each published place, which bounds what the coordinates alone give away; with other columns nothing is
    claimed.
    """

    name = "area_centers"

    k: int = parameter(5, help="records an area holds, at least", at_least=2)

    def rows_needed(self, p: int, q: int) -> int:
        """An area needs k records."""
        return self.k

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Replace every place by the mean of its area."""
        y = np.empty_like(data.x)
        for rows in areas(data.x, self.k):
            y[rows] = data.x[rows].mean(axis=0)
        return y


def smoothed(values: FloatArray, places: FloatArray, bandwidth: float) -> FloatArray:
    """Return the mean of the values around every place, weighted by a normal kernel of its distance."""
    total = np.empty_like(values)
    step = max(1, _CHUNK // max(len(values), 1))
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        squared = np.square(places[part, None] - places[None]).sum(axis=2)
        weights = np.exp(-squared / (2 * bandwidth**2))
        total[part] = weights @ values / weights.sum(axis=1, keepdims=True)
    return total


@ANONYMIZERS.register("spatial_smoothing")
@dataclass(frozen=True, kw_only=True)
class SpatialSmoothing(ConditionalPerturbation):
    """Publishes numbers as their mean over the neighborhood; ``given`` names the coordinates.

    Weights fall with the distance by a normal kernel. A record far from all others keeps its own value: combine it with
    ``area_centers``, or choose a larger bandwidth (de Jonge & de Wolf 2016). Without given columns the neighborhood is
    one of similar values, in standard deviations.
    """

    name = "spatial_smoothing"

    bandwidth: float = parameter(1.0, help="standard deviation of the kernel, in units of the coordinates", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bandwidth == 0:
            raise ConfigError("The 'bandwidth' parameter of SpatialSmoothing must be a float > 0. Got 0 instead.")

    def rows_needed(self, p: int, q: int) -> int:
        """A mean needs two records."""
        return 2

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Smooth all columns over the same neighborhoods."""
        places = data.s if data.given else standardized(data.x).scores
        return smoothed(data.x, places, self.bandwidth)
