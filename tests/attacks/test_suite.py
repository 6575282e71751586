"""Suites: which attacks are in them, with which parameters, and that one that cannot be tried stops no other."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.attacks import ATTACKS
from fedanon.attacks.composition import Composition
from fedanon.attacks.context import AttackContext
from fedanon.attacks.suite import run_attacks, select_attacks
from fedanon.errors import ConfigError, UnknownComponentError
from tests.attacks.contexts import context_of


@pytest.fixture(scope="module")
def context() -> AttackContext:
    return context_of("adult", rows=300, k=5)


def test_all_holds_every_attack_and_the_parts_make_up_all() -> None:
    parts = [name for part in ("release", "model", "federation") for name, _ in select_attacks(part)]
    assert sorted(parts) == ATTACKS.names() == [name for name, _ in select_attacks("all")]


def test_names_and_suites_may_be_mixed_and_count_once() -> None:
    names = [name for name, _ in select_attacks("record_linkage, release")]
    assert names[0] == "record_linkage"
    assert names.count("record_linkage") == 1


def test_parameters_are_read_from_text() -> None:
    ((_, attack),) = select_attacks("composition", {"composition": {"people": "100", "shared": "20"}})
    assert isinstance(attack, Composition)
    assert (attack.people, attack.shared) == (100, 20)


def test_former_names_of_parameters_are_accepted_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="'hospitals' is now called 'nodes'"):
        ((_, attack),) = select_attacks("composition", {"composition": {"hospitals": "3"}})
    assert isinstance(attack, Composition)
    assert attack.nodes == 3


def test_wrong_names_and_parameters_are_refused() -> None:
    with pytest.raises(UnknownComponentError, match="record_linkage"):
        select_attacks("record_linkag")
    with pytest.raises(ConfigError, match="not in the suite: composition"):
        select_attacks("homogeneity", {"composition": {"people": "100"}})
    with pytest.raises(ConfigError, match="Composition has no parameter person"):
        select_attacks("composition", {"composition": {"person": "1"}})


def test_an_attack_that_cannot_be_tried_is_named_with_its_reason(context: AttackContext) -> None:
    seen: list[str] = []
    report = run_attacks(context, select_attacks("minimality,record_linkage"), seen.append)
    assert seen == ["minimality", "record_linkage"]
    assert [result.attack for result in report.results] == ["record_linkage"]
    assert "requirement beyond k" in report.not_tried["minimality"]


def test_infeasible_releases_stop_no_other_attack(context: AttackContext) -> None:
    crowded = select_attacks("composition,homogeneity", {"composition": {"people": "4", "shared": "2"}})
    report = run_attacks(context, crowded)
    assert "fewer than k=5" in report.not_tried["composition"]
    assert [result.attack for result in report.results] == ["homogeneity"]


def test_results_tell_what_it_takes_to_find_them_again(context: AttackContext) -> None:
    (result,) = run_attacks(context, select_attacks("record_linkage")).results
    document = result.to_dict()
    assert document["seed"] == context.seed
    assert document["lift"] == pytest.approx(document["rate"] * 300)
    assert document["seconds"] >= 0
    assert np.isfinite([document[name] for name in ("rate", "baseline", "low", "high")]).all()
