"""Risk per record: who is exposed is found, luck is not taken for exposure, and subgroups name nobody."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers import Identity
from fedanon.attacks.base import RecordChances
from fedanon.attacks.context import AttackContext
from fedanon.attacks.membership import Shadows, _by_record, likelihood_ratio
from fedanon.attacks.record_linkage import RecordLinkage
from fedanon.attacks.record_risk import OTHERS, SMALLEST_SUBGROUP, most_exposed, record_frame, summarize_records
from fedanon.attacks.suite import run_attacks, select_attacks
from fedanon.attacks.tree_reconstruction import TreeReconstruction
from fedanon.data.table import Table
from fedanon.metrics.distances import record_distances
from fedanon.metrics.linkage import link
from tests.attacks.contexts import context_of, made, small_table, table_of


def chances_of(table: Table, chances: np.ndarray, ranks: np.ndarray | None = None) -> RecordChances:
    rows = np.arange(len(table))
    return RecordChances(rows, chances if ranks is None else ranks, chances, np.full(len(rows), 0.01), rows)


# ---- by attack ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mondrian", "k_member"])
def test_the_links_of_all_records_add_up_to_those_of_the_classes(method: str) -> None:
    context = context_of("adult", rows=300, k=5, method=method)
    links, classes = link(context.table, context.release, record_distances), context.release.classes
    np.testing.assert_array_equal(np.bincount(classes.labels, weights=links.own_is_near), links.own)


def test_nobody_is_linked_more_surely_than_their_class_allows() -> None:
    context = context_of("adult", rows=300, k=5)
    found = RecordLinkage().run(context, context.rng("")).records
    assert found is not None
    classes = context.release.classes
    assert (found.chances <= 1 / classes.sizes[classes.labels[found.rows]]).all()
    assert 0 < found.chances.max() <= 1 / 5


def test_raw_records_are_linked_unless_others_are_equal() -> None:
    table = small_table([30, 30, 50, 60], ["cardiac", "cardiac", "cancer", "general"], ["flu"] * 4)
    context = made(table, "identity")
    found = RecordLinkage().run(context, context.rng("")).records
    assert found is not None
    assert found.chances.tolist() == [0.5, 0.5, 1.0, 1.0]


def test_the_people_a_model_remembers_are_the_most_exposed() -> None:
    rng, models, people = np.random.default_rng(0), 21, 1000
    inside = np.argsort(rng.random((models, people)), axis=0) < models // 2
    remembered = np.arange(people) < 10
    said = rng.normal(size=(models, people)) + 12 * (inside & remembered)
    shadows = Shadows(said, inside, 3 * np.arange(people), np.arange(people))
    scores = np.array([likelihood_ratio(shadows, i) for i in range(models)])
    found = _by_record(scores, shadows)
    most = most_exposed(found)
    assert set(most) == set(np.flatnonzero(remembered))
    assert found.rows[most].tolist() == (3 * most).tolist()
    assert found.chances[most].mean() > 0.9
    assert found.chances[~remembered].mean() < 0.02


def test_rebuilt_rows_are_those_of_one_node() -> None:
    pytest.importorskip("xgboost")
    table = table_of("adult", 240)
    context = AttackContext(table, Identity().anonymize(table, rng=0), Identity())
    result = TreeReconstruction(nodes=3, rounds=3, depth=3).run(context, context.rng(""))
    found = result.records
    assert found is not None
    assert len(found.rows) == 80
    assert (np.diff(found.rows) > 0).all()
    assert found.chances.mean() == pytest.approx(result.rate)
    assert found.guesses.mean() == pytest.approx(result.baseline)


# ---- summed up ----------------------------------------------------------------------------------


def test_luck_is_not_exposure() -> None:
    """Picked by one count and shown by another, the luckiest of equals are as exposed as all."""
    rng, table = np.random.default_rng(0), table_of("adult", 5000)
    counts = rng.binomial(8, 0.05, size=(2, len(table))) / 8
    apart = summarize_records("lira", table, chances_of(table, counts[0], counts[1]))
    together = summarize_records("lira", table, chances_of(table, counts[0]))
    assert apart.most == 50
    assert apart.most_low < 0.05 < apart.most_high
    assert together.most_low > 0.2, "what picking and showing by the same count would say"


def test_planted_exposure_is_shown_for_the_column_it_depends_on() -> None:
    table = table_of("adult", 3000)
    women = (table.frame["sex"] == "Female").to_numpy()
    risk = summarize_records("lira", table, chances_of(table, np.where(women, 0.3, 0.02)))
    first = risk.columns[0]
    assert first.column == "sex"
    assert [(one.subgroup, round(one.chance, 2)) for one in first.subgroups] == [("Male", 0.02), ("Female", 0.3)]
    assert first.differs
    even = summarize_records("lira", table, chances_of(table, np.full(len(table), 0.05)))
    assert not any(column.differs for column in even.columns)


@given(st.lists(st.integers(0, 60), min_size=4, max_size=4), st.integers(0, 3))
def test_no_subgroup_can_be_told_that_is_too_small(sizes: list[int], seed: int) -> None:
    wards = [
        ward for ward, size in zip(("cardiac", "trauma", "cancer", "general"), sizes, strict=True) for _ in range(size)
    ]
    ages = np.random.default_rng(seed).integers(0, 101, len(wards)).tolist()
    if not wards:
        return
    table = small_table(ages, wards, ["flu"] * len(wards))
    risk = summarize_records("record_linkage", table, chances_of(table, np.linspace(0, 1, len(wards))))
    for column in risk.columns:
        assert sum(one.n for one in column.subgroups) == len(table), "so a hidden one could be worked out"
        assert all(one.n >= SMALLEST_SUBGROUP for one in column.subgroups)


def test_small_subgroups_are_taken_together() -> None:
    table = table_of("adult", 300)
    risk = summarize_records("lira", table, chances_of(table, np.linspace(0, 1, 300)))
    race = next(column for column in risk.columns if column.column == "race")
    assert OTHERS in [one.subgroup for one in race.subgroups]


def test_a_person_with_one_row_is_a_person_and_rows_of_several_are_records() -> None:
    from fedanon.testing.examples import example_table

    several = example_table(120, several_rows=True)
    assert summarize_records("lira", several, chances_of(several, np.full(len(several), 0.1))).unit == "records"
    single = table_of("adult", 100)
    risk = summarize_records("lira", single, chances_of(single, np.full(100, 0.1)))
    assert risk.unit == single.schema.unit
    json.dumps(risk.to_dict())


def test_the_frame_has_rows_and_chances_alone() -> None:
    context = context_of("adult", rows=300, k=5)
    report = run_attacks(context, select_attacks("record_linkage,homogeneity"))
    assert [risk.attack for risk in report.record_risks] == list(report.records) == ["record_linkage"]
    frame = record_frame(context.table, report.records)
    assert list(frame) == ["row", "record_linkage", "record_linkage_most_exposed"]
    assert frame["row"].tolist() == list(range(1, 301))
    assert frame["record_linkage_most_exposed"].sum() == 3
