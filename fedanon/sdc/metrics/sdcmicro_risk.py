"""Individual risk exactly as R's sdcMicro 5.8.1 counts it, beside the stricter counts of this package.

There a cell that says nothing (missing, or suppressed to '*') agrees with anything
(:func:`fedanon.sdc.wildcards.sdcmicro_people`), records are counted rather than people, F_k may be below f_k, and the
median deviation that tells the main part of the data is R's ``mad``, which has a factor of 1.4826. Where nothing is
missing, one row is one person and weights are at least 1, all other numbers equal ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.release.release import Release
from fedanon.sdc.metrics.individual_risk import (
    MAD_FACTOR,
    THRESHOLDS,
    Frequencies,
    above_main_part,
    risk_of_one,
    risk_of_two,
    violations,
)
from fedanon.sdc.metrics.suda import released_keys
from fedanon.sdc.wildcards import sdcmicro_people
from fedanon.types import AnyArray, FloatArray, IntArray


class KeyRisk(NamedTuple):
    """Frequencies of the key combinations of the published records, and the risk of each record."""

    counts: Frequencies
    risk: FloatArray


def sdcmicro_frequencies(keys: IntArray, weights: FloatArray | None = None) -> Frequencies:
    """Return f_k and F_k of every record as ``freqCalc`` does; codes below 0 are missing."""
    groups = Groups.equal_rows(keys)
    codes = keys[groups.first_rows]
    sample = sdcmicro_people(codes, groups.sizes.astype(np.float64))[groups.labels]
    if weights is None:
        return Frequencies(sample.astype(np.int64), sample)
    population = sdcmicro_people(codes, np.asarray(groups.total(weights)))[groups.labels]
    return Frequencies(sample.astype(np.int64), population)


def sdcmicro_risk(counts: Frequencies) -> FloatArray:
    """Return the risk of every record as ``indivRisk`` does, by its default approximation for f_k above 2."""
    f = counts.sample.astype(np.float64)
    p = f / counts.population
    risk = p / (f - (1 - p))
    for size, form in ((1, risk_of_one), (2, risk_of_two)):
        chosen = counts.sample == size
        risk[chosen] = form(p[chosen])
    return np.where(counts.population == f, 1 / f, risk)


def sdcmicro_household_risk(risk: FloatArray, households: AnyArray) -> FloatArray:
    r"""Return :math:`1 - \prod_{j \in h(i)} (1 - r_j)` for every record; risks may exceed 1 where F_k is below f_k."""
    groups = Groups.from_labels(households)
    together = np.multiply.reduceat((1 - risk)[groups.order], groups.starts)
    return np.asarray(1 - together[groups.labels])


def key_risk(keys: IntArray, weights: FloatArray | None) -> KeyRisk:
    """Return frequencies and risk of records with these keys; without weights the risk is 1/f_k."""
    counts = sdcmicro_frequencies(keys, weights)
    return KeyRisk(counts, 1 / counts.population if weights is None else sdcmicro_risk(counts))


# ---- metrics -------------------------------------------------------------------------------------


def _of_release(table: Table, release: Release) -> KeyRisk:
    return key_risk(released_keys(release), None if table.weights is None else table.weights[~release.suppressed])


def _household(table: Table, release: Release, total: Callable[[FloatArray], float]) -> float:
    if table.households is None or not release.classes.count:
        return np.nan
    return total(sdcmicro_household_risk(_of_release(table, release).risk, table.households[~release.suppressed]))


@metric("global_risk_sdcmicro", title="Global risk, as in sdcMicro", better="lower")
def global_risk_sdcmicro(table: Table, release: Release) -> float:
    """Mean of the individual risks with '*' and missing keys agreeing with anything (measure_risk)."""
    return float(_of_release(table, release).risk.mean()) if release.classes.count else np.nan


@metric("expected_reidentifications_sdcmicro", title="Expected re-identifications, as in sdcMicro", better="lower")
def expected_reidentifications_sdcmicro(table: Table, release: Release) -> float:
    """Sum of the individual risks with '*' and missing keys agreeing with anything (measure_risk)."""
    return float(_of_release(table, release).risk.sum())


@metric("individual_risk_max_sdcmicro", title="Individual risk, highest, as in sdcMicro", better="lower")
def individual_risk_max_sdcmicro(table: Table, release: Release) -> float:
    """Highest risk of a published record with '*' and missing keys agreeing with anything (measure_risk)."""
    return float(_of_release(table, release).risk.max(initial=-1.0)) if release.classes.count else np.nan


@metric("records_above_main_part_sdcmicro", title="Records above the main part, as in sdcMicro", better="lower")
def records_above_main_part_sdcmicro(table: Table, release: Release) -> float:
    """Number of records with a risk above the median plus twice R's mad, and above 0.1, as sdcMicro prints it."""
    return float(above_main_part(_of_release(table, release).risk, MAD_FACTOR).sum())


@metric("household_risk_sdcmicro", title="Household risk, as in sdcMicro", better="lower")
def household_risk_sdcmicro(table: Table, release: Release) -> float:
    """Mean over published records of the risk that anyone in the household is re-identified (hier_risk)."""
    return _household(table, release, lambda risk: float(risk.mean()))


@metric(
    "household_expected_reidentifications_sdcmicro",
    title="Expected re-identifications by household, as in sdcMicro",
    better="lower",
)
def household_expected_reidentifications_sdcmicro(table: Table, release: Release) -> float:
    """Sum over published records of the risk that anyone in the household is re-identified (hier_risk_ER)."""
    return _household(table, release, lambda risk: float(risk.sum()))


def _register(k: int) -> None:
    def count(table: Table, release: Release) -> float:
        return float(violations(_of_release(table, release).counts.sample, k))

    count.__doc__ = (
        f"Number of published records that agree with fewer than {k}, '*' agreeing with anything (freqCalc)."
    )
    metric(f"violations_{k}_sdcmicro", title=f"Violations of {k}-anonymity, as in sdcMicro", better="lower")(count)


for _k in THRESHOLDS:
    _register(_k)
