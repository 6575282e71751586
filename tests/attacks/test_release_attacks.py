"""Attacks on releases: counted by hand on small tables, by brute force, and against published numbers on Adult."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.attacks.context import AttackContext
from fedanon.attacks.downcoding import Downcoding, not_all_alike
from fedanon.attacks.homogeneity import BackgroundKnowledge, Homogeneity
from fedanon.attacks.interval_ends import IntervalEnds
from fedanon.attacks.numeric_disclosure import NumericDisclosure
from fedanon.attacks.record_linkage import RecordLinkage
from fedanon.attacks.sensitive_values import ClassValues, values_of
from fedanon.data.cells import Intervals, Nodes
from fedanon.data.groups import Groups
from fedanon.data.schema import Schema
from fedanon.metrics.linkage import linkage_expected_share
from tests.attacks.contexts import context_of, made, small_table

RNG = np.random.default_rng(0)


def ward_context() -> AttackContext:
    """Two classes of three: ages 20-24 in surgery, all with flu; ages 60-80 in medicine, two with gout."""
    ages, wards = [20, 22, 24, 60, 70, 80], ["cardiac", "trauma", "cardiac", "cancer", "cancer", "general"]
    costs = [100.0, 100.0, 103.0, 500.0, 510.0, 900.0]
    table = small_table(ages, wards, ["flu", "flu", "flu", "gout", "gout", "lupus"], costs)
    context = made(table, k=3)
    assert context.release.classes.sizes.tolist() == [3, 3]
    return context


# ---- by hand ------------------------------------------------------------------------------------


def test_cells_are_numbered_by_what_they_say_wherever_they_come_from() -> None:
    schema = Schema.from_dict({"attributes": {"x": {"role": "sensitive", "type": "text"}}, "missing_values": ["?"]})
    written = pd.DataFrame({"x": ["1", "True", "?", None, "1", "b"]})
    typed = pd.DataFrame({"x": pd.Series([1, True, None, "?", "1", "b"], dtype=object)})
    (one, other), values, size = values_of([written, typed], schema, "x")
    assert one.tolist() == other.tolist() == [0, 1, 3, 3, 0, 2]
    assert (list(values), size) == (["1", "True", "b"], 4)


def test_homogeneity_counts_people_of_classes_with_one_value() -> None:
    found = Homogeneity().run(ward_context(), RNG)
    assert found.rate == pytest.approx(3 / 6)
    # of the C(6, 3) ways to fill a class of three, one gives flu alone
    assert found.baseline == pytest.approx(1 / 20)
    assert found.details["largest_class_with_one_value"] == 3


def test_background_knowledge_guesses_the_majority_of_the_class() -> None:
    found = BackgroundKnowledge().run(ward_context(), RNG)
    assert found.rate == pytest.approx(5 / 6)
    assert found.baseline == pytest.approx(3 / 6)
    # lupus is guessed if gout, one of the two other illnesses, is excluded
    assert found.details["rate_knowing_one_not"] == pytest.approx((5 + 1 / 2) / 6)


def test_a_false_published_value_is_no_success() -> None:
    context = ward_context()
    swapped = context.release.passthrough.assign(illness=["gout"] * 6)
    false = AttackContext(context.table, replace(context.release, passthrough=swapped), None)
    assert Homogeneity().run(false, RNG).rate == pytest.approx(2 / 6)
    assert BackgroundKnowledge().run(false, RNG).rate == pytest.approx(2 / 6)


def test_tight_intervals_have_someone_at_each_end() -> None:
    found = IntervalEnds().run(ward_context(), RNG)
    assert found.rate == 1
    assert found.n == 4
    # every age inside an interval is someone's in its class: there are no others in the table
    assert found.baseline == 1
    assert found.details["values_at_an_end"] == pytest.approx(4 / 6)


def test_wider_intervals_do_not_give_their_ends_away() -> None:
    context = ward_context()
    age = context.release.cells["age"]
    wider = {**context.release.cells, "age": replace(age, low=age.low - 1, high=age.high + 1)}
    found = IntervalEnds().run(replace(context, release=replace(context.release, cells=wider)), RNG)
    assert found.rate == 0
    assert found.details["values_at_an_end"] == 0


def test_numbers_near_the_middle_of_a_cell_or_class_are_disclosed() -> None:
    found = NumericDisclosure(tolerance=0.1).run(ward_context(), RNG)
    # 22 is the middle of [20, 24], 70 that of [60, 80]: within 10 % are 20, 22, 24 and 70
    assert found.details["rate_age"] == pytest.approx(4 / 6)
    assert found.details["baseline_age"] == pytest.approx(3 / 6)
    # the medians are 100 and 510
    assert found.details["rate_cost"] == pytest.approx(5 / 6)
    assert found.details["baseline_cost"] == pytest.approx(3 / 6)
    assert found.rate == pytest.approx(9 / 12)
    assert found.n == 12


def test_downcoding_learns_from_what_is_published_below() -> None:
    """Illness tells the ward where the ward is published; where it is not, the attacker applies that."""
    ages = [20] * 4 + [40] * 4 + [60, 61, 62, 63]
    wards = ["cardiac"] * 4 + ["trauma"] * 4 + ["cardiac", "trauma", "cardiac", "trauma"]
    illness = ["heart"] * 4 + ["bone"] * 4 + ["heart", "bone", "heart", "bone"]
    context = made(small_table(ages, wards, illness), "identity")
    tree = context.table.columns[1].hierarchy
    cells = {
        "age": Intervals(np.array([20.0, 40.0, 60.0]), np.array([20.0, 40.0, 63.0])),
        "ward": Nodes(np.array([tree.nodes[name] for name in ("cardiac", "trauma", "Surgery")]), tree),
    }
    release = replace(context.release, groups=Groups.from_labels(np.repeat([0, 1, 2], 4)), cells=cells)
    found = Downcoding().run(replace(context, release=release), RNG)
    assert found.n == 4
    assert found.rate == 1
    assert found.baseline == pytest.approx(0.5)


def test_suppressed_rows_are_not_tried() -> None:
    context = ward_context()
    labels = context.release.groups.labels.copy()
    labels[labels == labels[0]] = -1
    hidden = replace(context.release, groups=Groups(labels, context.release.groups.count))
    found = Homogeneity().run(AttackContext(context.table, hidden, None), RNG)
    assert found.n == 3
    assert found.rate == 0


# ---- by brute force -----------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=14))
def test_excluding_one_value_is_what_trying_all_exclusions_gives(rows: list[tuple[int, int]]) -> None:
    domain = 4
    labels, codes = np.array(rows).T
    known = ClassValues.from_codes(Groups.from_labels(labels), codes)
    chance = known.guess_chance_without_one(domain)[known.pair_of]
    for row, code in enumerate(codes):
        counts = np.bincount(codes[labels == labels[row]], minlength=domain)
        expected = []
        for other in set(range(domain)) - {code}:
            left = np.where(np.arange(domain) == other, -1, counts)
            expected.append((left[code] == left.max()) / (left == left.max()).sum())
        assert chance[row] == pytest.approx(np.mean(expected))


@given(st.integers(2, 4), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_not_all_alike_is_what_listing_all_ways_gives(people: int, kinds: int, seed: int) -> None:
    chances = np.random.default_rng(seed).dirichlet(np.ones(kinds), size=people)
    ways = np.stack(np.meshgrid(*[range(kinds)] * people), axis=-1).reshape(-1, people)
    weight = chances[np.arange(people), ways].prod(axis=1) * (np.ptp(ways, axis=1) > 0)
    found = not_all_alike(chances, np.zeros(people, dtype=np.int32))
    for person in range(people):
        expected = np.bincount(ways[:, person], weights=weight, minlength=kinds) / weight.sum()
        assert found[person] == pytest.approx(expected, abs=1e-6)


def test_homogeneity_by_chance_is_the_mean_of_shuffled_releases() -> None:
    context = context_of("adult", rows=300, k=5)
    rng = np.random.default_rng(1)
    shuffled = []
    for _ in range(100):
        rest = context.release.passthrough.assign(income=rng.permutation(context.release.passthrough["income"]))
        table = replace(context.table, frame=context.table.frame.assign(income=rest["income"]))
        shuffled.append(
            Homogeneity().run(AttackContext(table, replace(context.release, passthrough=rest), None), rng).rate
        )
    error = np.std(shuffled) / np.sqrt(len(shuffled))
    assert Homogeneity().run(context, rng).baseline == pytest.approx(np.mean(shuffled), abs=4 * error)


# ---- on Adult -----------------------------------------------------------------------------------


def test_linkage_of_raw_adult_is_the_share_of_distinct_rows() -> None:
    """The specification's 60 %: 18,109 distinct rows of 30,162, each linked once."""
    found = RecordLinkage().run(context_of("adult", method="identity"), RNG)
    assert found.rate == pytest.approx(18109 / 30162)
    assert found.baseline == pytest.approx(1 / 30162)


@pytest.mark.parametrize(("k", "published"), [(3, 0.204), (5, 0.124), (10, 0.063), (20, 0.033)])
def test_linkage_of_mondrian_on_adult_is_near_the_published_one(k: int, published: float) -> None:
    """The specification's figures come from another Mondrian; ours lie up to 0.25 percentage points away."""
    context = context_of("adult", k=k)
    found = RecordLinkage().run(context, RNG)
    assert found.rate == pytest.approx(published, abs=0.003)
    assert found.rate == pytest.approx(linkage_expected_share(context.table, context.release))
    assert found.details["highest_chance_of_a_record"] <= 1 / k


def test_homogeneity_falls_with_k_on_adult() -> None:
    rates = [Homogeneity().run(context_of("adult", k=k), RNG).rate for k in (5, 20)]
    # the specification has 43 and 19 % with another Mondrian; ours finds finer classes, so more of one value
    assert rates == pytest.approx([0.4671, 0.2680], abs=5e-5)
