"""The risk of a table before anything is changed: what its keys alone reveal, in numbers that quote no cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedanon.anonymizers.baselines import Identity
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.release.release import Release
from fedanon.sdc.metrics.diversity import diversity, sensitive_codes
from fedanon.sdc.metrics.individual_risk import (
    THRESHOLDS,
    Frequencies,
    above_main_part,
    benedetti_franconi_risk,
    household_risk,
    naive_risk,
    released_frequencies,
    violations,
)
from fedanon.sdc.metrics.suda import SAMPLING_FRACTION, SampleUniques, minimal_sample_uniques, released_keys
from fedanon.types import FloatArray

Facts = dict[str, Any]


def risk_profile(table: Table, *, max_size: int | None = None, fraction: float = SAMPLING_FRACTION) -> Facts:
    """Compute everything `fedanon sdc risk` reports, by section.

    Parameters
    ----------
    table : its quasi-identifiers are the keys.
    max_size : size of the largest sample unique SUDA looks for; any size if None.
    fraction : share of the population that is in the table, for DIS-SUDA.
    """
    if not table.columns:
        raise ConfigError("The table has no key columns; choose some with --keys.")
    release = Identity().anonymize(table, rng=0)
    counts = released_frequencies(table, release)
    risk = benedetti_franconi_risk(counts)
    uniques = minimal_sample_uniques(released_keys(table, release), max_size)
    names = [column.name for column in table.columns]
    return {
        "n": len(table),
        "people": table.n_people,
        "weighted": table.weights is not None,
        "keys": names,
        "key_combinations": release.classes.count,
        "anonymity": _anonymity(counts, weighted=table.weights is not None),
        "individual": _individual(counts, risk),
        "suda": _suda(uniques, fraction),
        "key_contributions": _contributions(uniques, names),
        "diversity": _diversity(release),
        **({} if table.households is None else {"household": _household(risk, table.households)}),
    }


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
    }


def _contributions(uniques: SampleUniques, names: list[str]) -> list[Facts]:
    """Count for every key the records with a minimal sample unique that contains it, and its share of all uniques."""
    found = []
    for name, member in zip(names, uniques.members.T, strict=True):
        share = float(member.mean()) if len(member) else 0.0
        found.append({"key": name, "records": len(np.unique(uniques.rows[member])), "share": share})
    return sorted(found, key=lambda entry: -entry["records"])


def _diversity(release: Release) -> list[Facts]:
    labels = release.classes.labels[~release.suppressed]
    found = []
    for name, codes in sensitive_codes(release).items():
        per_record = diversity(labels, codes)
        facts: Facts = {"column": name, "values": int(codes.max()) + 1, "alone": int((per_record.distinct < 2).sum())}
        for kind, values in per_record._asdict().items():
            facts |= {f"{kind}_min": float(values.min()), f"{kind}_mean": float(values.mean())}
        found.append(facts)
    return found


def _household(risk: FloatArray, households: Any) -> Facts:
    shared = household_risk(risk, households)
    return {
        "households": len(np.unique(households)),
        "expected_reidentifications": float(shared.sum()),
        "mean_risk": float(shared.mean()),
        "highest_risk": float(shared.max()),
    }
