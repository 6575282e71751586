"""Intersection of releases: cases by hand, an attacker who tries all worlds, and months of a table like Aids2."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers import Mondrian
from fedanon.attacks import AttackContext, Finding, Intersection
from fedanon.attacks.context import SeenRelease
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, load
from fedanon.harness.tasks.series import SeriesTask, see_step, with_people
from tests.attacks.contexts import small_table
from tests.privacy.worlds import possible

Classes = list[tuple[str, str]]


def seen(*classes: tuple[str, str]) -> SeenRelease:
    """A release by its classes: one letter per person, and as many per row for the values; 'x' is a row of nobody."""
    people = [(name, label) for label, (names, _) in enumerate(classes) for name in names if name != "x"]
    rows = [(value, label) for label, (_, values) in enumerate(classes) for value in values]
    return SeenRelease(
        [name for name, _ in people],
        np.array([label for _, label in people], dtype=np.int64),
        np.array([label for _, label in rows], dtype=np.int64),
        pd.DataFrame({"illness": [value for value, _ in rows]}),
    )


def attack(*releases: SeenRelease) -> Finding:
    table = small_table([1, 2], ["cardiac", "cancer"], ["flu", "gout"])
    context = AttackContext(table, Mondrian(k=2).anonymize(table, rng=0), None, 0, releases)
    return Intersection(column="illness").run(context, np.random.default_rng(0))


def certain(*releases: Classes) -> int:
    return int(attack(*(seen(*release) for release in releases)).details["certain_people"])


def test_one_release_with_two_values_gives_nothing_away() -> None:
    found = attack(seen(("abc", "ffg")))
    assert (found.rate, found.baseline, found.details["values_left"]) == (0, 0, 2)
    assert found.details["posterior"] == pytest.approx(2 / 3)


def test_who_stayed_is_left_with_what_the_classes_share() -> None:
    """a is in {f, g} and then in {f, h}: f; b then has g, and d h."""
    assert certain([("ab", "fg")], [("ad", "fh")]) == 3


def test_who_left_and_who_came_are_given_away_by_the_counts() -> None:
    assert certain([("abc", "ffg")], [("bc", "fg")]) == 1
    assert certain([("abc", "ffg")], [("abcd", "ffgg")]) == 1
    assert certain([("abc", "ffg")], [("bcd", "ffg")]) == 0
    assert certain([("abc", "ffg")], [("bcd", "fgg")]) == 2


def test_a_row_of_nobody_hides_who_left() -> None:
    assert certain([("abc", "ffg")], [("xbc", "ffg")]) == 0


def test_the_baseline_is_the_first_release_of_each_person() -> None:
    found = attack(seen(("ab", "ff"), ("cd", "fg")), seen(("cde", "fgg")))
    assert found.baseline == pytest.approx(2 / 5)
    assert found.rate == pytest.approx(3 / 5)


@st.composite
def months(draw: st.DrawFn) -> list[Classes]:
    """Releases of people a to g, each in classes drawn at random, with values that stay."""
    value = {name: draw(st.sampled_from("ffgh")) for name in "abcdefg"}
    releases = []
    for _ in range(draw(st.integers(1, 3))):
        label = {name: draw(st.integers(-1, 2)) for name in value}
        classes = ["".join(name for name in value if label[name] == which) for which in range(3)]
        releases.append([(names, "".join(sorted(value[name] for name in names))) for names in classes if names])
    return [release for release in releases if release]


@given(months())
def test_nothing_is_called_certain_that_another_world_denies(releases: list[Classes]) -> None:
    if not releases:
        return
    groups = [(frozenset(names), Counter[object](values)) for release in releases for names, values in release]
    sure = sum(len(values) == 1 for values in possible(groups).values())
    found = certain(*releases)
    assert found <= sure
    by_sets: dict[str, set[str]] = {}
    for names, values in (each for release in releases for each in release):
        for name in names:
            by_sets[name] = by_sets.get(name, set("fgh")) & set(values)
    assert found >= sum(len(left) == 1 for left in by_sets.values())


# ---- months of a table ---------------------------------------------------------------------------


def like_aids2(people: int) -> Table:
    """A table of the kind: nine of ten share a value, the others are of seven kinds."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "state": rng.choice(["NSW", "VIC", "QLD", "Other"], people, p=[0.63, 0.2, 0.08, 0.09]),
            "diag": rng.integers(8302, 11504, people),
            "age": np.clip(rng.normal(37, 10, people), 0, 82).astype(int),
            "categ": rng.choice(["hs", *"abcdefg"], people, p=[0.87, 0.03, 0.025, 0.025, 0.015, 0.015, 0.015, 0.005]),
        }
    )
    columns = {
        "state": {"role": "quasi_identifying", "type": "categorical", "values": ["NSW", "VIC", "QLD", "Other"]},
        "diag": {"role": "quasi_identifying", "type": "numeric", "range": [8302, 11503], "integer": True},
        "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 82], "integer": True},
        "categ": {"role": "sensitive", "type": "categorical", "values": ["hs", *"abcdefg"]},
    }
    return Table.from_frame(frame, Schema.from_dict({"one_row_per_person": True, "attributes": columns}))


def test_a_second_release_made_alone_exposes_many_and_one_of_a_series_nobody() -> None:
    method, table = Mondrian(k=10, require="l=2:categ"), with_people(like_aids2(1000), "categ")
    context = AttackContext(table, method.anonymize(table, rng=0), method)
    alone = Intersection().run(context, context.rng("intersection"))
    assert alone.baseline == 0
    assert alone.details["certain_in_several"] / alone.details["people_in_several"] > 0.1
    found = attack_series(method, table, context)
    assert found.rate == 0
    assert found.n == 1000


def attack_series(method: Mondrian, table: Table, context: AttackContext) -> Finding:
    """The attack on a table and 80 % of its people, released as a series."""
    from fedanon.anonymizers.series import release_next, start_history

    history, releases = start_history(method, table.schema), []
    everyone = np.arange(len(table))
    for rows in (everyone, np.sort(np.random.default_rng(0).permutation(everyone)[: len(table) * 4 // 5])):
        people = [f"{row:04d}" for row in rows]
        step = release_next(method, table.select_rows(rows), people, history, rng=0)
        history = step.history
        releases.append(see_step(step))
    return Intersection().run(AttackContext(table, context.release, None, 0, tuple(releases)), context.rng("x"))


needs_aids2 = pytest.mark.skipif(not DATASETS["aids2"].available, reason="Aids2.csv of pydataset is not at hand")


@needs_aids2
def test_two_releases_of_aids2_expose_hundreds_if_made_alone_and_nobody_as_a_series() -> None:
    """An 80 % sample: 332 of 2,274 people were seen to be exposed by intersecting sets."""
    method, table = Mondrian(k=10, require='l=2:"T.categ"'), load("aids2")
    context = AttackContext(table, method.anonymize(table, rng=0), method)
    found = Intersection().run(context, context.rng("intersection")).details
    assert 200 < found["certain_by_sets"] < 600
    assert found["certain_people"] >= found["certain_by_sets"]
    assert 2200 < found["people_in_several"] < 2350
    people = with_people(table, "T.categ")
    assert attack_series(Mondrian(k=10, require='l=2:"T.categ"'), people, context).rate == 0


@pytest.mark.slow
@needs_aids2
def test_twelve_months_of_aids2_expose_nobody_and_cost_less_than_a_fifth() -> None:
    cells = [SeriesTask(dataset="aids2", method="mondrian", k=10, column="T.categ", seed=s).run() for s in range(5)]
    found = pd.DataFrame([cell.metrics for cell in cells])
    assert (found["certain_series"] <= found["certain_first"]).all()
    assert (found["certain_alone"] > 1500).all()
    assert found["ncp_extra"].mean() < 0.2
