"""Attacks that make releases of their own: several hospitals, people outside, a requirement dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedanon.attacks.composition import Candidates, Composition, CompositionFederation, judge_intersection
from fedanon.attacks.inference import Inference, Linkability
from fedanon.attacks.minimality import Minimality, find_merged_classes, shuffle_within
from fedanon.attacks.singling_out import SinglingOut
from fedanon.data.groups import Groups
from fedanon.errors import FedanonError
from tests.attacks.contexts import context_of, made, small_table


def test_intersection_leaves_what_all_releases_allow() -> None:
    rows = np.array([3, 5, 9])
    labels = np.array([0, 1, -1], dtype=np.int32)
    one = Candidates(rows, labels, np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool))
    other = Candidates(rows, labels, np.array([[0, 1, 1], [0, 1, 1], [1, 1, 1]], dtype=bool))
    both = [release.possible_for(rows) for release in (one, other)]
    assert both[0][2].all()  # a suppressed person may have any value
    found = judge_intersection(both[0] & both[1], both, one.classes_of(rows))
    assert found.rate == pytest.approx(1 / 3)
    assert found.baseline == 0
    assert found.details["unique_only_together"] == pytest.approx(1 / 3)
    assert found.details["values_left"] == pytest.approx((1 + 2 + 3) / 3)


@pytest.mark.parametrize(("k", "published"), [(3, 0.254), (5, 0.074), (10, 0.008)])
def test_composition_of_two_hospitals_is_near_the_published_one(k: int, published: float) -> None:
    """Two hospitals share 500 of 3,000 people each: the specification's rates, within the interval of four draws."""
    context = context_of("adult", k=k)
    attack = Composition(column="occupation")
    found = [attack.run(context, np.random.default_rng(seed)) for seed in range(4)]
    assert all(one.n == 500 for one in found)
    mean = np.mean([one.rate for one in found])
    reach = np.mean([one.interval[1] - one.interval[0] for one in found]) / 2
    assert mean == pytest.approx(published, abs=reach)
    assert all(one.rate >= one.baseline for one in found)


def test_ten_hospitals_at_ten_give_away_few_occupations() -> None:
    """The goal: a sensitive value is unique for at most 1 % of the people that two of ten hospitals share."""
    attack = CompositionFederation(column="occupation")
    found = [attack.run(context_of("adult", k=10), np.random.default_rng(seed)) for seed in range(4)]
    assert np.mean([one.rate for one in found]) <= 0.01
    assert all(1300 < one.n < 1700 for one in found)  # a twentieth of 30,162 attends two


def test_two_values_in_every_class_stop_composition_of_a_binary_column() -> None:
    context = context_of("adult", rows=2000, k=5, require="l=2:income")
    found = CompositionFederation(nodes=4).run(context, np.random.default_rng(0))
    assert found.rate == 0


def test_small_tables_get_smaller_hospitals() -> None:
    found = Composition().run(context_of("adult", rows=300, k=5), np.random.default_rng(0))
    assert found.details["shared"] == pytest.approx(500 * 300 / 5500, abs=1)
    assert found.n == found.details["shared"]


def test_quasi_identifiers_alone_single_out_no_one_of_a_class() -> None:
    found = SinglingOut().run(context_of("adult", rows=2000, k=5), np.random.default_rng(0))
    assert found.details["rate_by_quasi_identifiers_alone"] == 0
    # columns that are published as they are do
    assert found.interval[0] > found.baseline


def test_people_outside_are_no_easier_to_guess_than_members() -> None:
    for attack in (Inference(), Linkability()):
        found = attack.run(context_of("adult", rows=2000, method="identity"), np.random.default_rng(0))
        assert found.interval[0] > found.baseline, attack.title


def test_merged_classes_are_unions_of_whole_groups() -> None:
    before = Groups.from_labels(np.array([0, 0, 1, 1, 2, 2, 3, 3]))
    after = Groups.from_labels(np.array([0, 0, 0, 0, 1, 1, 2, 1]))
    # class 0 is the union of two groups; a group is torn between 1 and 2
    assert find_merged_classes(after, before).tolist() == [True, False, False]
    assert not find_merged_classes(before, before).any()


def test_values_are_dealt_out_within_classes_only() -> None:
    labels = np.array([1, 0, 1, 0, 0, 2], dtype=np.int32)
    source = shuffle_within(labels, np.random.default_rng(0))
    assert sorted(source) == list(range(6))
    assert (labels[source] == labels).all()


def test_minimality_tells_who_has_the_rarer_value() -> None:
    """Of a merged class one half must have been of one value: the rarer ones are then all in the other half.

    Without the argument each of the 8 has gout with 4/8. With it, the four who have it are all in one half, so either
    half has it with equal chance: the belief in those who have it stays 1/2, and so does that of everyone else.
    """
    table = small_table([20, 21, 22, 23, 70, 71, 72, 73], ["cardiac"] * 8, ["flu"] * 4 + ["gout"] * 4)
    context = made(table, k=4, require="l=2:illness")
    with pytest.raises(FedanonError, match="rarer"):
        Minimality().run(context, np.random.default_rng(0))  # both are the most common value
    mixed = small_table([20, 21, 22, 23, 70, 71, 72, 73], ["cardiac"] * 8, ["flu"] * 7 + ["gout"])
    context = made(mixed, k=4, require="l=2:illness")
    found = Minimality(draws=2000).run(context, np.random.default_rng(0))
    assert found.n == 1
    assert found.baseline == pytest.approx(1 / 8)
    # one gout among eight always leaves a half with flu alone: the merge says nothing
    assert found.rate == pytest.approx(1 / 8, abs=0.03)


def test_minimality_raises_the_belief_where_a_merge_needs_a_reason() -> None:
    """Groups of 3 and 5 with two of gout: it is merged only if both are in one group, which is mostly the larger one.

    P(both in the five) = 10/28, P(both in the three) = 3/28; a merge needs one of them. So each of the five has gout
    with 10/13 * 2/5 = 4/13, instead of 1/4.
    """
    ages, illness = [20, 21, 22, 70, 71, 72, 73, 74], ["flu"] * 3 + ["gout"] * 2 + ["flu"] * 3
    context = made(small_table(ages, ["cardiac"] * 3 + ["cancer"] * 5, illness), k=3, require="l=2:illness")
    found = Minimality(draws=4000).run(context, np.random.default_rng(0))
    assert found.n == 2
    assert found.baseline == pytest.approx(1 / 4)
    assert found.rate == pytest.approx(4 / 13, abs=0.02)


def test_a_method_is_needed_to_make_releases() -> None:
    context = replace(context_of("adult", rows=300, k=5), anonymizer=None)
    for attack in (Composition(), CompositionFederation(), Inference(), Linkability(), SinglingOut()):
        with pytest.raises(FedanonError, match="needs the method"):
            attack.run(context, np.random.default_rng(0))
