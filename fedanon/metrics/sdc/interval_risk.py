"""Interval risk: originals that lie within a small interval around what is published of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.numeric_pair import deviations, numeric_pair

#: half the length of an interval in standard deviations
ALPHA = 0.05


def values_in_interval(original: FloatArray, published: FloatArray, alpha: float = ALPHA) -> NDArray[np.bool_]:
    r"""Which originals lie in :math:`[y - \alpha \sigma_p, y + \alpha \sigma_p]` (Morais 2022, eq. 3.5).

    :math:`\sigma_p` is the standard deviation of the original column.
    """
    return np.asarray(np.abs(original - published) <= alpha * deviations(original))


def records_in_interval(original: FloatArray, published: FloatArray, alpha: float = ALPHA) -> NDArray[np.bool_]:
    """Which records have all their originals in the interval, of deviations of the *published* columns.

    That is how sdcMicro's ``dRisk`` counts.
    """
    return np.asarray((np.abs(original - published) <= alpha * deviations(published)).all(axis=1))


@metric("interval_risk", title="Interval risk", better="lower")
def interval_risk(table: Table, release: Release) -> float:
    """Share of the original numbers within 0.05 standard deviations of what is published (Morais 2022, eq. 3.5)."""
    pair = numeric_pair(table, release)
    return np.nan if pair is None else float(values_in_interval(pair.original, pair.published).mean())


@metric("interval_risk_records", title="Interval risk, whole records", better="lower")
def interval_risk_records(table: Table, release: Release) -> float:
    """Share of the records all of whose numbers are within 0.05 published standard deviations (sdcMicro's dRisk)."""
    pair = numeric_pair(table, release)
    return np.nan if pair is None else float(records_in_interval(pair.original, pair.published).mean())
