"""What every registered method publishes on three tables with two seeds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.snapshot import house
from tests.snapshot.conftest import Snapshots

SEEDS = (1, 2)
K = 4
RESTRICTED = {"keep_zeros": True, "non_negative": True, "reverse_map": True}
# those of the contract tests; searches by wall time are bounded by trials, and noise follows from the seed
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "mondrian": [{}, {"relaxed": True}, {"strict_children": True}, {"profile": "thesis"}, {"require": "l=2:diagnosis"}],
    "gfkmc": [
        {},
        {"profile": "paper"},
        {"profile": "thesis"},
        {"publish": "most_common_record"},
        {"publish": "most_common_value"},
    ],
    "full_domain": [{}, {"suppression": 0.0, "objective": "arx"}, {"suppression": 0.5, "numeric_levels": 2}],
    "cb": [{}, {"profile": "thesis"}],
    "k_member": [{}, {"profile": "thesis"}],
    "oka": [{}, {"profile": "thesis"}],
    "tdg": [{}, {"profile": "thesis"}],
    "wkmca": [{}, {"outlier_share": 0.0, "farthest": "max_max"}],
    "individual_ranking": [{}, {"optimal": True}],
    "dp_microaggregation": [{"randomness": "seeded"}, {"randomness": "seeded", "delta": 1e-5}],
    "v_mdav": [{}, {"gamma": 1.1}],
    "gsms": [{}, {"dissolve": True}],
    "brkga": [{"population": 20, "generations": 5}],
    "derivative_free": [{}, {"start": "gsms", "gamma": 3}],
    "anneal": [
        {"iterations": 5000},
        {"iterations": 5000, "objective": "sse"},
        {"iterations": 2000, "restarts": 2, "recombine": True},
        {"iterations": 2000, "require": "l=2:diagnosis"},
    ],
    "blocks": [{"block_size": 30, "iterations": 2000}, {"block_size": 30, "method": "tdg"}],
    "longitudinal_reverse_mapping": [{"periods": "age,income"}],
    "egadp": [{}, {"columns": "age"}],
    "data_shuffling": [{}, {"columns": "age"}],
    "additive_noise": [{}, {"columns": "age"}, RESTRICTED],
    "log_multiplicative_noise": [{"keep_zeros": True}],
    "distortion": [{"significance": 0.0}],
    "rounding": [{"base": 7.0}],
}


def _label(method: str, variant: dict[str, Any]) -> str:
    return " ".join([house.old_name(method), *(f"{house.old_name(name)}={value}" for name, value in variant.items())])


CASES = {
    _label(method, variant): (method, variant)
    for method in house.method_names()
    for variant in VARIANTS.get(method, [{}])
}


@pytest.mark.parametrize("label", CASES)
def test_releases_are_as_they_were(label: str, snapshots: Snapshots) -> None:
    method, variant = CASES[label]
    texts = {
        f"{label}/{table}/seed {seed}": house.publish(method, {"k": K} | variant, table, seed)
        for table in house.MISSING
        for seed in SEEDS
    }
    assert not all(text.startswith("refused") for text in texts.values()), "no table suits it: nothing would be frozen"
    snapshots.check(texts, group=label)


def test_no_method_is_gone(snapshots: Snapshots) -> None:
    snapshots.check_groups(set(CASES))
