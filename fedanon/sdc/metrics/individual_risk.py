"""Individual risk of re-identification from frequencies of keys, and its totals: global and by household."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.metrics.base import MetricFunction, metric
from fedanon.release.release import Release
from fedanon.release.view import PublishedView
from fedanon.types import AnyArray, BoolArray, FloatArray, IndexArray

#: below this share of unsampled people the closed forms cancel, and their power series is used
_NEARLY_ALL = 0.05
_TERMS = np.arange(1, 16)

#: risks up to this are never above the main part (Morais 2022, eq. 7.1)
LEAST_HIGH_RISK = 0.1
#: what R's ``mad`` multiplies the median deviation by, to be the standard deviation of a normal distribution
MAD_FACTOR = 1.4826
#: the k for which violations are counted, as sdcMicro prints them
THRESHOLDS = (2, 3, 5)


# ---- frequencies of key combinations --------------------------------------------------------------


class Frequencies(NamedTuple):
    """How often the key combination of every record occurs.

    Parameters
    ----------
    sample : f_k, among the records.
    population : F_k, among the people the records represent; never below f_k, since the sample is part of them.
    """

    sample: IndexArray
    population: FloatArray


def frequencies(labels: AnyArray, weights: FloatArray | None = None, persons: AnyArray | None = None) -> Frequencies:
    r"""Count how often the key combination of every record occurs (Morais 2022, section 3.1).

    .. math:: f_k = |\{i : k_i = k\}|, \qquad F_k = \sum_{i : k_i = k} w_i

    Parameters
    ----------
    labels : number of the key combination of every record, none below 0.
    weights : sampling weight of every record; 1 if None.
    persons : number of the person of every record, if f_k is to count people.
    """
    groups = Groups.from_labels(labels)
    counts = groups.sizes if persons is None else groups.distinct(persons)
    sample = counts[groups.labels]
    if weights is None:
        return Frequencies(sample, sample.astype(np.float64))
    return Frequencies(sample, np.maximum(groups.total(weights)[groups.labels], sample))


def released_frequencies(view: PublishedView, weights: FloatArray | None) -> Frequencies:
    """Return the :func:`frequencies` of the published records, by their equivalence classes."""
    kept = ~view.suppressed
    persons = None if view.persons is None else view.persons[kept]
    return frequencies(view.classes.labels[kept], None if weights is None else weights[kept], persons)


def violations(counts: AnyArray, k: int) -> int:
    r"""Count the records that violate k-anonymity, :math:`\sum_i [F_{k_i} < k]` (Morais 2022, eq. 3.2)."""
    return int((counts < k).sum())


# ---- risk of every record -------------------------------------------------------------------------


def naive_risk(counts: Frequencies) -> FloatArray:
    r"""Return the risk of every record, :math:`r_i = 1 / F_k` (Morais 2022, eq. 3.6)."""
    return 1.0 / counts.population


def benedetti_franconi_risk(counts: Frequencies) -> FloatArray:
    r"""Return the risk of every record of a sample: the mean of 1/F_k given f_k for a negative binomial F_k.

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
    for size, form in ((1, risk_of_one), (2, risk_of_two)):
        chosen = counts.sample == size
        risk[chosen] = form(p[chosen])
    return risk


def risk_of_one(p: FloatArray) -> FloatArray:
    r"""Return :math:`\frac{p}{1-p} \ln\frac1p`, near p = 1 by its power series."""
    rest = 1 - p
    near = np.abs(rest) < _NEARLY_ALL
    powers = rest[:, None] ** _TERMS
    series = 1 - (powers / (_TERMS * (_TERMS + 1))).sum(axis=1)
    safe = np.where(near, 0.5, p)
    return np.asarray(np.where(near, series, safe / (1 - safe) * -np.log(safe)))


def risk_of_two(p: FloatArray) -> FloatArray:
    r"""Return :math:`\frac{p}{1-p} - (\frac{p}{1-p})^2 \ln\frac1p`, near p = 1 by its power series."""
    rest = 1 - p
    near = np.abs(rest) < _NEARLY_ALL
    powers = rest[:, None] ** (_TERMS - 1)
    series = p * (powers / (_TERMS * (_TERMS + 1))).sum(axis=1)
    safe = np.where(near, 0.5, p)
    odds = safe / (1 - safe)
    return np.asarray(np.where(near, series, odds + odds**2 * np.log(safe)))


def household_risk(risk: FloatArray, households: AnyArray) -> FloatArray:
    r"""Return for every record the risk that anyone in its household is re-identified (Morais 2022, eq. 3.8).

    .. math:: 1 - \prod_{i \in h} (1 - r_i)
    """
    groups = Groups.from_labels(households)
    with np.errstate(divide="ignore"):  # a certain risk makes the household's certain: log 0 is intended
        return np.asarray(-np.expm1(groups.total(np.log1p(-risk))[groups.labels]))


def above_main_part(risk: FloatArray, factor: float = 1.0) -> BoolArray:
    r"""Mark records whose risk is above the main part's (Morais 2022, eq. 7.1).

    .. math:: r_i > \mathrm{med}(R) + 2 c\, \mathrm{med}(|R - \mathrm{med}(R)|) \;\wedge\; r_i > 0.1

    with the ``factor`` c = 1 as printed; sdcMicro, whose numbers the equation is to explain, has MAD_FACTOR.
    """
    if not len(risk):
        return np.zeros(0, dtype=bool)
    middle = np.median(risk)
    return np.asarray((risk > middle + 2 * factor * np.median(np.abs(risk - middle))) & (risk > LEAST_HIGH_RISK))


# ---- metrics -------------------------------------------------------------------------------------


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
    return float(naive_risk(released_frequencies(release, table.weights)).mean()) if release.classes.count else np.nan


@metric("records_above_main_part", title="Records above the main part", better="lower")
def records_above_main_part(table: Table, release: Release) -> float:
    """Number of published records with a risk far above the median, and above 0.1 (Morais 2022, eq. 7.1)."""
    return float(above_main_part(_risk(table, release)).sum())


@metric("household_risk", title="Household risk", better="lower")
def mean_household_risk(table: Table, release: Release) -> float:
    """Mean over published records of the risk that anyone in the household is re-identified; NaN without households."""
    if table.households is None or not release.classes.count:
        return np.nan
    return float(household_risk(_risk(table, release), table.households[~release.suppressed]).mean())


@metric("household_expected_reidentifications", title="Expected re-identifications by household", better="lower")
def household_expected_reidentifications(table: Table, release: Release) -> float:
    """Sum over published records of the risk that anyone in the household is re-identified; NaN without households."""
    if table.households is None:
        return np.nan
    return float(household_risk(_risk(table, release), table.households[~release.suppressed]).sum())


def _risk(table: Table, release: Release) -> FloatArray:
    return benedetti_franconi_risk(released_frequencies(release, table.weights))


def _sample_violations(k: int) -> MetricFunction:
    def count(table: Table, release: Release) -> float:
        return float(violations(released_frequencies(release, table.weights).sample, k))

    count.__doc__ = f"Number of published records whose quasi-identifiers fewer than {k} people in the data share."
    return count


def _population_violations(k: int) -> MetricFunction:
    def count(table: Table, release: Release) -> float:
        if table.weights is None:
            return np.nan
        return float(violations(released_frequencies(release, table.weights).population, k))

    count.__doc__ = f"Number of published records whose quasi-identifiers fewer than {k} of the population share."
    return count


for _k in THRESHOLDS:
    metric(f"violations_{_k}", title=f"Violations of {_k}-anonymity", better="lower")(_sample_violations(_k))
    metric(f"violations_{_k}_population", title=f"Violations of {_k}-anonymity, population", better="lower")(
        _population_violations(_k)
    )
