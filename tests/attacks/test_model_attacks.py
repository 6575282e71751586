"""Attacks on models of real tables: raw training gives people away, anonymized training does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Finding, wilson_interval
from fedanon.attacks.context import AttackContext, with_scaled_budget
from fedanon.data.table import Table
from fedanon.errors import NotApplicableError
from tests.attacks.contexts import context_of, made, table_of

pytest.importorskip("xgboost")

#: small enough for a test, with the defaults of everything else
SETTINGS: dict[str, dict[str, Any]] = {
    "membership_loss": {"rounds": 10},
    "lira": {"profile": "central", "shadows": 6, "people": 240},
    "gradient_inversion": {"tries": 60},
    "tree_leakage": {"rounds": 3, "nodes": 4},
}


def _run(name: str, context: AttackContext, **settings: Any) -> Finding:
    return ATTACKS[name](**(SETTINGS[name] | settings)).run(context, context.rng(name))


def _raw(rows: int) -> AttackContext:
    return context_of("adult", rows=rows, method="identity")


def test_these_are_the_attacks_on_models() -> None:
    assert {name for name, attack in ATTACKS.items() if attack.target == "model"} >= set(SETTINGS)


@pytest.mark.parametrize(
    ("name", "rows"), [("gradient_inversion", 400), ("tree_leakage", 400), ("membership_loss", 240)]
)
def test_rates_are_rates_and_seeds_decide(name: str, rows: int) -> None:
    context = context_of("adult", rows=rows, k=10)
    found = _run(name, context)
    assert 0 <= found.interval[0] <= found.rate <= found.interval[1] <= 1
    assert found.n > 0
    assert _run(name, context) == found


@pytest.mark.parametrize("name", ["gradient_inversion", "tree_leakage"])
def test_raw_rows_are_given_away_entirely_and_anonymized_ones_are_not(name: str) -> None:
    raw, anonymized = _run(name, _raw(400)), _run(name, context_of("adult", rows=400, k=10))
    assert raw.rate == 1.0
    assert anonymized.interval[1] < 0.95


def test_the_loss_tells_members_of_raw_training_only() -> None:
    raw, anonymized = (_run("membership_loss", s, rounds=150) for s in (_raw(300), context_of("adult", rows=300, k=10)))
    assert raw.interval[0] > 0.5
    assert anonymized.interval[0] < 0.5 < anonymized.interval[1]


def test_the_likelihood_ratio_tells_members_of_raw_training_only() -> None:
    raw, anonymized = _run("lira", _raw(300)), _run("lira", context_of("adult", rows=300, k=10))
    assert raw.details["auc"] > 0.6 > 0.55 > anonymized.details["auc"]
    assert raw.rate > anonymized.rate


def test_a_federation_is_attacked_by_federations() -> None:
    found = _run("lira", context_of("adult", rows=200, k=3), profile="federation", shadows=4, nodes=2, rounds=2)
    assert found.n == 200 * 2
    assert found.baseline == 0.01


def test_a_gradient_tells_as_much_as_the_published_rows() -> None:
    details = _run("gradient_inversion", context_of("adult", rows=400, k=10), tries=400).details
    assert details["rate_of_updates_on_one_row"] == pytest.approx(details["rate_of_the_published_rows"], abs=0.02)
    assert details["categories_resting_on_fewer_than_5_rows"] == 0


def test_zeros_of_a_raw_update_tell_which_categories_a_client_has() -> None:
    details = _run("gradient_inversion", _raw(400)).details
    assert details["categories_known_present_or_absent"] == 1.0
    assert details["categories_resting_on_fewer_than_5_rows"] > 0
    assert details["rate_of_updates_on_one_row"] == 1.0


def test_larger_batches_tell_less() -> None:
    found = _run("gradient_inversion", _raw(400))
    assert found.rate > found.details["rate_of_batches_of_8"] > found.baseline - 0.1


@pytest.mark.parametrize(
    ("dataset", "method"), [("adult", "cb"), ("adult", "gfkmc"), ("adult_numeric", "mdav"), ("randhie", "mondrian")]
)
def test_no_threshold_of_an_anonymized_node_is_a_raw_value(dataset: str, method: str) -> None:
    assert _run("tree_leakage", context_of(dataset, rows=400, method=method, k=10)).rate == 0.0


@pytest.mark.parametrize("name", ["lira", "membership_loss", "tree_leakage"])
def test_a_release_from_a_file_is_not_enough(name: str) -> None:
    with pytest.raises(NotApplicableError, match="method"):
        _run(name, replace(context_of("adult", rows=400, k=10), anonymizer=None))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_table_without_a_target_is_not_attacked(name: str) -> None:
    table = table_of("adult", 200)
    without: Table = replace(table, schema=replace(table.schema, target=None))
    with pytest.raises(NotApplicableError, match="target"):
        _run(name, made(without, k=5))


def test_a_search_gets_its_share_of_the_budget() -> None:
    anneal = ANONYMIZERS["anneal"]
    assert with_scaled_budget(anneal(k=5, seconds=4.0), 0.25).seconds == 1.0
    assert with_scaled_budget(anneal(k=5, iterations=1000), 0.1).iterations == 100
    assert with_scaled_budget(ANONYMIZERS["mondrian"](k=5), 0.1) == ANONYMIZERS["mondrian"](k=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings", "auc", "rate"), [("identity", {}, 0.648, 0.075), ("mondrian", {"k": 5}, 0.516, 0.009)]
)
def test_anchors_of_the_likelihood_ratio(method: str, settings: dict[str, int], auc: float, rate: float) -> None:
    # measured on Adult before this package was written, setting and interval not noted: one model of 2,000 members
    found = _run("lira", context_of("adult", method=method, **settings), shadows=32, people=4000)
    low, high = wilson_interval(rate * 2000, 2000)
    assert low <= found.rate <= high
    assert found.details["auc"] == pytest.approx(auc, abs=0.02)


@pytest.mark.slow
def test_a_federation_at_k_10_catches_hardly_more_members_than_others() -> None:
    context = context_of("adult", k=10)
    found = ATTACKS["lira"]().run(context, context.rng("lira"))
    assert found.rate <= 0.015
