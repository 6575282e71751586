"""Individual risk of re-identification from frequency counts, and what it sums up to: globally and in households."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.frequencies import Frequencies, released_frequencies

#: below this share of unsampled people the closed forms cancel, and their power series is used
_NEARLY_ALL = 0.05
_TERMS = np.arange(1, 16)

#: risks below it are never called high by the rule of the main part (Morais 2022, eq. 7.1)
LEAST_HIGH_RISK = 0.1


def naive_risk(counts: Frequencies) -> FloatArray:
    r"""Risk of every record, :math:`r_i = 1 / F_k` (Morais 2022, eq. 3.6)."""
    return 1.0 / counts.population


def benedetti_franconi_risk(counts: Frequencies) -> FloatArray:
    r"""Risk of every record of a sample, the mean of 1/F_k given f_k under a negative binomial F_k.

    .. math::
        r = \frac{p}{1-p} \ln\frac1p \;(f=1), \quad
        r = \frac{p}{1-p} - \Big(\frac{p}{1-p}\Big)^2 \ln\frac1p \;(f=2), \quad
        r = \frac{p}{f - (1-p)} \;(f>2), \qquad p = f_k / F_k

    (Benedetti & Franconi 1998, the third an approximation; sdcMicro's ``measure_risk``). Without weights p = 1 and
    the risk is 1/f_k.
    """
    f = counts.sample.astype(np.float64)
    p = f / counts.population
    risk = p / (f - (1 - p))
    for size, form in ((1, _risk_of_one), (2, _risk_of_two)):
        chosen = counts.sample == size
        risk[chosen] = form(p[chosen])
    return risk


def _risk_of_one(p: FloatArray) -> FloatArray:
    rest = 1 - p
    near = rest < _NEARLY_ALL
    powers = rest[:, None] ** _TERMS
    series = 1 - (powers / (_TERMS * (_TERMS + 1))).sum(axis=1)
    safe = np.where(near, 0.5, p)
    return np.asarray(np.where(near, series, safe / (1 - safe) * -np.log(safe)))


def _risk_of_two(p: FloatArray) -> FloatArray:
    rest = 1 - p
    near = rest < _NEARLY_ALL
    powers = rest[:, None] ** (_TERMS - 1)
    series = p * (powers / (_TERMS * (_TERMS + 1))).sum(axis=1)
    safe = np.where(near, 0.5, p)
    odds = safe / (1 - safe)
    return np.asarray(np.where(near, series, odds + odds**2 * np.log(safe)))


def household_risk(risk: FloatArray, households: NDArray[Any]) -> FloatArray:
    r"""Risk of every record that someone of its household is re-identified, :math:`1 - \prod_{i \in h} (1 - r_i)`.

    (Morais 2022, eq. 3.8.)
    """
    groups = Groups.of(households)
    with np.errstate(divide="ignore"):  # a certain risk makes the household's certain: log 0 is meant
        return np.asarray(-np.expm1(groups.total(np.log1p(-risk))[groups.labels]))


def above_main_part(risk: FloatArray) -> NDArray[np.bool_]:
    r"""Records whose risk is higher than the main part's (Morais 2022, eq. 7.1; sdcMicro prints their number).

    .. math:: r_i > \mathrm{med}(R) + 2\, \mathrm{med}(|R - \mathrm{med}(R)|) \;\wedge\; r_i > 0.1
    """
    if not len(risk):
        return np.zeros(0, dtype=bool)
    middle = np.median(risk)
    return np.asarray((risk > middle + 2 * np.median(np.abs(risk - middle))) & (risk > LEAST_HIGH_RISK))


# ---- metrics ------------------------------------------------------------------------------------


@metric("individual_risk_max", title="Individual risk, highest", better="lower")
def individual_risk_max(table: Table, release: Release) -> float:
    """Highest risk of a published record by Benedetti and Franconi; 1/f where the table has no sampling weights."""
    return float(_risk(table, release).max(initial=-1.0)) if release.classes.count else np.nan


@metric("global_risk", title="Global risk", better="lower")
def global_risk(table: Table, release: Release) -> float:
    """Mean of the individual risks by Benedetti and Franconi (Morais 2022, eq. 3.7)."""
    return float(_risk(table, release).mean()) if release.classes.count else np.nan


@metric("expected_reidentifications", title="Expected re-identifications", better="lower")
def expected_reidentifications(table: Table, release: Release) -> float:
    r"""Sum of the individual risks by Benedetti and Franconi, :math:`\sum_i r_i`."""
    return float(_risk(table, release).sum())


@metric("global_risk_naive", title="Global risk, naive", better="lower")
def global_risk_naive(table: Table, release: Release) -> float:
    r"""Mean of the naive individual risks, :math:`\frac1N \sum_i 1/F_k` (Morais 2022, eq. 3.6 and 3.7)."""
    return float(naive_risk(released_frequencies(table, release)).mean()) if release.classes.count else np.nan


@metric("records_above_main_part", title="Records above the main part", better="lower")
def records_above_main_part(table: Table, release: Release) -> float:
    """Number of published records with a risk far above the median, and above 0.1 (Morais 2022, eq. 7.1)."""
    return float(above_main_part(_risk(table, release)).sum())


@metric("household_risk", title="Household risk", better="lower")
def mean_household_risk(table: Table, release: Release) -> float:
    """Mean over published records of the risk that anyone of the household is re-identified; NaN without households."""
    if table.households is None or not release.classes.count:
        return np.nan
    return float(household_risk(_risk(table, release), table.households[~release.suppressed]).mean())


@metric("household_expected_reidentifications", title="Expected re-identifications by household", better="lower")
def household_expected_reidentifications(table: Table, release: Release) -> float:
    """Sum over published records of the risk that anyone of the household is re-identified; NaN without households."""
    if table.households is None:
        return np.nan
    return float(household_risk(_risk(table, release), table.households[~release.suppressed]).sum())


def _risk(table: Table, release: Release) -> FloatArray:
    return benedetti_franconi_risk(released_frequencies(table, release))
