"""The risk of a table or of what was published of it: what its keys alone reveal, in numbers that quote no cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedanon.anonymizers.baselines import Identity
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.release.view import PublishedView
from fedanon.sdc.metrics.diversity import record_diversity, sensitive_codes
from fedanon.sdc.metrics.individual_risk import (
    LEAST_HIGH_RISK,
    MAD_FACTOR,
    THRESHOLDS,
    Frequencies,
    above_main_part,
    benedetti_franconi_risk,
    household_risk,
    naive_risk,
    released_frequencies,
    violations,
)
from fedanon.sdc.metrics.sdcmicro_risk import key_risk, sdcmicro_household_risk
from fedanon.sdc.metrics.suda import (
    SAMPLING_FRACTION,
    SampleUniques,
    dis_intervals,
    minimal_sample_uniques,
    released_keys,
)
from fedanon.types import FloatArray, IntArray

Facts = dict[str, Any]

#: bars of the histogram of individual risks
BARS = 20


def risk_profile(
    view: PublishedView,
    weights: FloatArray | None = None,
    households: IntArray | None = None,
    *,
    max_size: int | None = None,
    fraction: float = SAMPLING_FRACTION,
    threshold: float = LEAST_HIGH_RISK,
    most_listed: int = 0,
) -> Facts:
    """Compute everything `fedanon sdc risk` reports, by section.

    Parameters
    ----------
    view : what is published; its quasi-identifiers are the keys. Of a table, that is its identity release.
    weights, households : of every row, where they are known.
    max_size : size of the largest sample unique SUDA looks for; any size if None.
    fraction : share of the population that is in the table, for DIS-SUDA.
    threshold : records with a higher individual risk are counted.
    most_listed : how many of them are listed, by the number of their row.
    """
    if not view.cells:
        raise ConfigError("The table has no key columns; choose some with --keys.")
    if not view.classes.count:
        raise ConfigError("Every row is suppressed: no record is left that could be at risk.")
    counts, keys = released_frequencies(view, weights), released_keys(view)
    risk = benedetti_franconi_risk(counts)
    kept = ~view.suppressed
    loose = key_risk(keys, None if weights is None else weights[kept])
    uniques = minimal_sample_uniques(keys, max_size)
    names = [attribute.name for attribute in view.schema.quasi_identifiers]
    return {
        "n": int(kept.sum()),
        "people": len(np.unique(view.persons)) if view.persons is not None and view.unit == "people" else None,
        "weighted": weights is not None,
        "keys": names,
        "key_combinations": view.classes.count,
        "silent_cells": int((keys < 0).sum()),
        "anonymity": _anonymity(counts, weighted=weights is not None),
        "anonymity_sdcmicro": _anonymity(loose.counts, weighted=weights is not None),
        "individual": _individual(counts, risk),
        "individual_sdcmicro": _individual_sdcmicro(loose.risk),
        "histogram": _histogram(risk),
        "above_threshold": _above(view, counts, risk, threshold, most_listed),
        "suda": _suda(uniques, fraction),
        "key_contributions": _contributions(uniques, names),
        "diversity": _diversity(view),
        **({} if households is None else {"household": _household(risk, loose.risk, households[kept])}),
    }


def table_risk(table: Table, **options: Any) -> Facts:
    """Return the :func:`risk_profile` of a table as it is."""
    profile = risk_profile(Identity().anonymize(table, rng=0), table.weights, table.households, **options)
    return {**profile, "people": table.n_people}


def _individual_sdcmicro(risk: FloatArray) -> Facts:
    return {
        "expected_reidentifications": float(risk.sum()),
        "global_risk": float(risk.mean()),
        "highest_risk": float(risk.max()),
        "above_main_part": int(above_main_part(risk, MAD_FACTOR).sum()),
    }


def _histogram(risk: FloatArray) -> Facts:
    """Count the records by their individual risk, in twentieths; the highest belongs to the last bar."""
    counts, edges = np.histogram(risk, bins=BARS, range=(0.0, 1.0))
    return {"edges": [round(float(edge), 10) for edge in edges], "records": counts.tolist()}


def _above(view: PublishedView, counts: Frequencies, risk: FloatArray, threshold: float, most: int) -> Facts:
    """Count the records above a threshold, and list the riskiest by the number of their row, the first being 1."""
    above = np.flatnonzero(risk > threshold)
    worst = above[np.argsort(-risk[above], kind="stable")][:most]
    rows = np.flatnonzero(~view.suppressed)
    listed = [
        {"row": int(rows[i]) + 1, "risk": float(risk[i]), "f": int(counts.sample[i]), "F": float(counts.population[i])}
        for i in worst
    ]
    return {"threshold": threshold, "records": len(above), "share": len(above) / len(risk), "listed": listed}


def _anonymity(counts: Frequencies, *, weighted: bool) -> Facts:
    facts: Facts = {f"violations_{k}": violations(counts.sample, k) for k in THRESHOLDS}
    if weighted:
        facts |= {f"violations_{k}_population": violations(counts.population, k) for k in THRESHOLDS}
    return facts


def _individual(counts: Frequencies, risk: FloatArray) -> Facts:
    naive, high = naive_risk(counts), above_main_part(risk)
    return {
        "expected_reidentifications": float(risk.sum()),
        "global_risk": float(risk.mean()),
        "highest_risk": float(risk.max()),
        "expected_reidentifications_naive": float(naive.sum()),
        "global_risk_naive": float(naive.mean()),
        "highest_risk_naive": float(naive.max()),
        "above_main_part": int(high.sum()),
        "above_main_part_share": float(high.mean()),
    }


def _suda(uniques: SampleUniques, fraction: float) -> Facts:
    scores, dis = uniques.scores(), uniques.dis_scores(fraction=fraction)
    return {
        "max_size": uniques.max_size,
        "fraction": fraction,
        "records": len(np.unique(uniques.rows)),
        "sample_uniques": len(uniques.rows),
        "score_mean": float(scores.mean()),
        "score_max": float(scores.max()),
        "dis_mean": float(dis.mean()),
        "dis_max": float(dis.max()),
        "dis_intervals": dis_intervals(dis).tolist(),
    }


def _contributions(uniques: SampleUniques, names: list[str]) -> list[Facts]:
    """Return what every key contributes to the SUDA scores in per cent, as sdcMicro does, and to how many records."""
    found = []
    for name, member, contribution in zip(names, uniques.members.T, uniques.contributions(), strict=True):
        share = float(member.mean()) if len(member) else 0.0
        records = len(np.unique(uniques.rows[member]))
        found.append({"key": name, "contribution": 100 * float(contribution), "records": records, "share": share})
    return sorted(found, key=lambda entry: -entry["contribution"])


def _diversity(view: PublishedView) -> list[Facts]:
    codes, loose = sensitive_codes(view), record_diversity(view, as_sdcmicro=True)
    found = []
    for name, per_record in record_diversity(view).items():
        facts: Facts = {"column": name, "values": int(codes[name].max()) + 1}
        facts["alone"] = int((per_record.distinct < 2).sum())
        for kind, values in per_record._asdict().items():
            facts |= {f"{kind}_min": float(values.min()), f"{kind}_mean": float(values.mean())}
            facts[f"{kind}_mean_sdcmicro"] = float(getattr(loose[name], kind).mean())
        found.append(facts)
    return found


def _household(risk: FloatArray, loose: FloatArray, households: IntArray) -> Facts:
    shared = household_risk(risk, households)
    return {
        "households": len(np.unique(households)),
        "expected_reidentifications": float(shared.sum()),
        "mean_risk": float(shared.mean()),
        "highest_risk": float(shared.max()),
        "expected_reidentifications_sdcmicro": float(sdcmicro_household_risk(loose, households).sum()),
    }
