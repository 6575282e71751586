"""Risk of published numbers: originals close to them, outliers that stay recognizable, and records linked to them.

Outliers are found again even after much noise, so their closeness is judged in proportion to how outlying a record is,
by robust Mahalanobis distances, RMD (Templ & Meindl 2008). The covariance is the minimum covariance determinant of
:mod:`fedanon.data.robust`, whose ridge of 1e-6 of the mean variance keeps it invertible if columns depend on each
other; sdcMicro fails there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedanon.data.robust import Scatter, mcd, squared_mahalanobis
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.nearest import link_chances, stands_alone
from fedanon.release.release import Release
from fedanon.sdc.metrics.numeric_pair import deviations, numeric_pair, standardized
from fedanon.types import BoolArray, FloatArray

#: half the length of an interval in standard deviations
ALPHA = 0.05
#: sdcMicro's defaults: length of an outlier's interval, and distance within which another record hides a published one
LENGTH, HIDING = 0.01, 0.05


# ---- intervals ------------------------------------------------------------------------------------


def values_in_interval(original: FloatArray, published: FloatArray, alpha: float = ALPHA) -> BoolArray:
    r"""Mark the originals that lie in :math:`[y - \alpha \sigma_p, y + \alpha \sigma_p]` (Morais 2022, eq. 3.5).

    :math:`\sigma_p` is the standard deviation of the original column.
    """
    return np.asarray(np.abs(original - published) <= alpha * deviations(original))


def records_in_interval(original: FloatArray, published: FloatArray, alpha: float = ALPHA) -> BoolArray:
    """Mark the records whose originals all lie in the interval, in deviations of the *published* columns.

    This is how sdcMicro's ``dRisk`` counts: a missing number is outside of no interval.
    """
    return np.asarray(~(np.abs(original - published) > alpha * deviations(published)).any(axis=1))


@metric("interval_risk", title="Interval risk", better="lower")
def interval_risk(table: Table, release: Release) -> float:
    """Share of the original numbers within 0.05 standard deviations of what is published (Morais 2022, eq. 3.5)."""
    pair = numeric_pair(table, release, complete=False)
    known = None if pair is None else ~np.isnan(pair.original)
    if pair is None or known is None or not known.any():
        return np.nan
    return float(values_in_interval(pair.original, pair.published)[known].mean())


@metric("interval_risk_records", title="Interval risk, whole records", better="lower")
def interval_risk_records(table: Table, release: Release) -> float:
    """Share of the records all of whose numbers are within 0.05 published standard deviations (sdcMicro's dRisk)."""
    pair = numeric_pair(table, release, complete=False)
    return np.nan if pair is None else float(records_in_interval(pair.original, pair.published).mean())


# ---- outliers -------------------------------------------------------------------------------------


class OutlierRisk(NamedTuple):
    """Which records are at risk: those published near their original, and those among them that stand alone."""

    near: BoolArray
    alone: BoolArray


def squared_reach(points: FloatArray, length: float = LENGTH) -> FloatArray:
    """Return half the interval of every record: ``length`` times its squared RMD (Templ & Meindl 2008)."""
    return length * squared_mahalanobis(points, _scatter(points))


def sdcmicro_reach(points: FloatArray, length: float = LENGTH) -> FloatArray:
    """Return half the interval of every record as in sdcMicro's ``dRiskRMD``: 0.05 ``length`` times the RMD.

    The distance is to the mean, not to the robust center.
    """
    around_mean = _scatter(points)._replace(center=points.mean(axis=0))
    return 0.05 * length * np.sqrt(squared_mahalanobis(points, around_mean))


def outlier_risk(original: FloatArray, published: FloatArray, reach: FloatArray, hiding: float = HIDING) -> OutlierRisk:
    """Find the records at risk.

    ``near``: a published value lies within ``reach`` of the original in any column, both sides standardized by their
    own moments (risk1). ``alone``: in addition, no other published record is within ``hiding`` of it (risk2).
    """
    x, y = standardized(original), standardized(published)
    near = np.asarray((np.abs(x - y) < reach[:, None]).any(axis=1))
    alone = near.copy()
    alone[near] = stands_alone(y, np.flatnonzero(near), hiding)
    return OutlierRisk(near, alone)


def _scatter(points: FloatArray) -> Scatter:
    return mcd(points, np.random.default_rng(0))  # a metric must return the same number twice


@metric("outlier_risk", title="Outlier risk", better="lower")
def outlier_risk_near(table: Table, release: Release) -> float:
    """Share of records published within 0.01 squared robust Mahalanobis distances of an original number.

    RMDID1 of Templ & Meindl 2008 (Morais 2022, section 3.2).
    """
    return _share(table, release, squared=True, alone=False)


@metric("outlier_risk_alone", title="Outlier risk, standing alone", better="lower")
def outlier_risk_alone(table: Table, release: Release) -> float:
    """Share of records at outlier risk that have no other published record near them (RMDID2)."""
    return _share(table, release, squared=True, alone=True)


@metric("outlier_risk_sdcmicro", title="Outlier risk, as in sdcMicro", better="lower")
def outlier_risk_sdcmicro(table: Table, release: Release) -> float:
    """Share of records published within 0.0005 robust Mahalanobis distances of an original number (dRiskRMD, risk1)."""
    return _share(table, release, squared=False, alone=False)


@metric("outlier_risk_alone_sdcmicro", title="Outlier risk, standing alone, as in sdcMicro", better="lower")
def outlier_risk_alone_sdcmicro(table: Table, release: Release) -> float:
    """Share of records at sdcMicro's outlier risk with no other published record near them (dRiskRMD, risk2)."""
    return _share(table, release, squared=False, alone=True)


@metric("weighted_outlier_risk_sdcmicro", title="Weighted outlier risk, as in sdcMicro", better="lower")
def weighted_outlier_risk_sdcmicro(table: Table, release: Release) -> float:
    """Share of records at sdcMicro's outlier risk times the sum of 0.05 times their distances (dRiskRMD, wrisk1)."""
    return _weighted(table, release, alone=False)


@metric(
    "weighted_outlier_risk_alone_sdcmicro",
    title="Weighted outlier risk, standing alone, as in sdcMicro",
    better="lower",
)
def weighted_outlier_risk_alone_sdcmicro(table: Table, release: Release) -> float:
    """The same of the records that stand alone (dRiskRMD, wrisk2)."""
    return _weighted(table, release, alone=True)


def _weighted(table: Table, release: Release, *, alone: bool) -> float:
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    reach = sdcmicro_reach(standardized(pair.original))
    found = outlier_risk(pair.original, pair.published, reach)
    risky = found.alone if alone else found.near
    return float(risky.mean() * (reach[risky] / LENGTH).sum())


def _share(table: Table, release: Release, *, squared: bool, alone: bool) -> float:
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    reach = (squared_reach if squared else sdcmicro_reach)(standardized(pair.original))
    found = outlier_risk(pair.original, pair.published, reach)
    return float((found.alone if alone else found.near).mean())


# ---- record linkage to the nearest two ------------------------------------------------------------


def linked_among_two(original: FloatArray, published: FloatArray) -> FloatArray:
    """Return, for every record, the chance that its own original is among the two nearest to what is published of it.

    See :func:`fedanon.metrics.nearest.link_chances`.
    """
    return link_chances(original, published, np.arange(len(original)), most=2)


@metric("dld_two", title="DLD, nearest two", better="lower")
def dld_two(table: Table, release: Release) -> float:
    """Share of the released records whose own original is the nearest or second nearest, by standardized numbers.

    Morais 2022, section 3.2, on whole records: Euclidean distance over the numeric quasi-identifiers in standard
    deviations of the originals, expectation among ties. ``dld`` counts only the nearest.
    """
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    spread = deviations(pair.original)
    varying = spread > 0
    if not varying.any():
        return np.nan
    x, y = (points[:, varying] / spread[varying] for points in (pair.original, pair.published))
    return float(linked_among_two(x, y).mean())
