"""Series of releases: nobody is exposed by all of them together, whoever comes, leaves, returns or changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.anonymizers import Mdav, Mondrian
from fedanon.anonymizers.series import SeriesStep, release_next, start_history
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError, InfeasibleError, PrivacyViolationError
from fedanon.privacy.series import SeriesClaim
from fedanon.release.gate import verify
from tests.privacy.worlds import possible

SCHEMA = Schema.from_dict(
    {
        "person_id": "who",
        "attributes": {
            "who": {"role": "identifying", "type": "text"},
            "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 99], "integer": True},
            "ward": {"role": "quasi_identifying", "type": "categorical", "values": ["east", "west"]},
            "illness": {"role": "sensitive", "type": "categorical", "values": ["flu", "gout", "asthma"]},
        },
    }
)
METHOD = Mondrian(k=2, require="l=2:illness")
Person = tuple[str, int, str, str]


def table(people: Sequence[Person]) -> Table:
    return Table.from_frame(pd.DataFrame(people, columns=["who", "age", "ward", "illness"]), SCHEMA)


def release_all(months: Sequence[Sequence[Person]], method: Mondrian = METHOD) -> list[SeriesStep]:
    history, steps = start_history(method, SCHEMA), []
    for people in months:
        try:
            step = release_next(method, table(people), sorted(person[0] for person in people), history, rng=0)
        except InfeasibleError:
            continue  # no release, nothing learnt
        history = step.history
        steps.append(step)
    return steps


def seen_by_attacker(steps: Sequence[SeriesStep]) -> list[tuple[frozenset[str], Counter[object]]]:
    """Classes with who is in them and what they show; of a counterfeit row even whom it stands for is known."""
    groups = []
    for release, step in enumerate(steps):
        labels, cohorts = step.release.classes.labels, step.claim.cohort_of_row
        for label in range(step.release.classes.count):
            rows = np.flatnonzero(labels == label)
            numbers = set(cohorts[rows].tolist())
            stays = [s for number in numbers for s in step.history.cohorts[number] if s.is_shown(release)]
            shown = Counter(step.release.to_frame()["illness"].iloc[rows].tolist())
            groups.append((frozenset(stay.person for stay in stays), shown))
    return groups


@st.composite
def series(draw: st.DrawFn) -> list[list[Person]]:
    """Small tables month by month: people come, leave and return; some move, some get another illness."""
    crowd = [
        [f"p{i}", draw(st.integers(0, 99)), draw(st.sampled_from(["east", "west"])), draw(st.sampled_from(ILLNESSES))]
        for i in range(draw(st.integers(4, 9)))
    ]
    months = []
    for _ in range(draw(st.integers(2, 4))):
        for person in crowd:
            if draw(st.integers(0, 9)) == 0:
                person[1] = draw(st.integers(0, 99))
            if draw(st.integers(0, 11)) == 0:
                person[3] = draw(st.sampled_from(ILLNESSES))
        months.append([tuple(person) for person in crowd if draw(st.integers(0, 3))])
    return [month for month in months if month]


ILLNESSES = ["flu", "flu", "flu", "gout", "asthma"]


@settings(max_examples=50, deadline=None)
@given(series())
def test_an_attacker_who_tries_all_worlds_is_certain_of_nobody(months: list[list[Person]]) -> None:
    attack_all_worlds(months)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(series())
def test_an_attacker_who_tries_all_worlds_is_certain_of_nobody_in_very_many_series(months: list[list[Person]]) -> None:
    attack_all_worlds(months)


def attack_all_worlds(months: list[list[Person]]) -> None:
    steps = release_all(months)
    for person, values in possible(seen_by_attacker(steps)).items():
        assert len(values) >= 2, person
    for release, step in enumerate(steps):
        for cohort in step.history.cohorts:
            assert sum(s.is_shown(release) for s in cohort) == 0 or sum(s.is_real(release) for s in cohort) > 0
        assert step.release.people.min() >= 2


@settings(max_examples=25, deadline=None)
@given(series())
def test_everybody_is_shown_with_their_own_value_or_counted(months: list[list[Person]]) -> None:
    for release, step in enumerate(release_all(months)):
        facts = step.claim.facts
        real = [s for cohort in step.history.cohorts for s in cohort if s.is_real(release)]
        assert len(step.table) == step.table.n_units + facts["counterfeit_rows"]
        assert step.table.n_units == len(real) + sum(facts["held_back"].values())
        frame = step.release.to_frame()
        assert Counter(frame["illness"].dropna()) == Counter(
            step.history.values[s.value][0] for cohort in step.history.cohorts for s in cohort if s.is_shown(release)
        )


def wide_months() -> list[list[Person]]:
    first = [(f"p{i}", i, "east" if i < 10 else "west", "flu" if i % 3 else "gout") for i in range(20)]
    return [first, first[1:]]


def test_a_leaver_with_no_one_to_take_the_place_is_kept_as_a_counterfeit_row() -> None:
    steps = release_all(wide_months())
    assert steps[1].claim.facts["counterfeit_rows"] == 1
    assert len(steps[1].release) == 20
    assert "1 counterfeit rows" in " ".join(steps[1].release.provenance.notes)
    assert "together, the 2 releases" in steps[1].release.promise
    assert "together" not in steps[0].release.promise


def test_who_comes_back_is_shown_again_where_others_do_not_count_on_them() -> None:
    """One cohort; a leaves with b and g, and returns when c and h leave and z comes."""
    ill = dict.fromkeys("abcdef", "flu") | dict.fromkeys("ghij", "gout") | {"x": "flu", "y": "gout", "z": "flu"}

    def month(names: str) -> list[Person]:
        return [(name, 50, "east", ill[name]) for name in names]

    steps = release_all([month("abcdefghij"), month("cdefhijxy"), month("adefijxyz")])
    assert [step.claim.facts["counterfeit_rows"] for step in steps] == [0, 0, 0]
    assert steps[2].claim.facts["held_back"] == {}
    assert sum(stay.person == "a" for cohort in steps[2].history.cohorts for stay in cohort) == 2
    assert {len(values) for values in possible(seen_by_attacker(steps)).values()} == {2}


def test_the_gate_refuses_a_release_that_the_history_does_not_tell() -> None:
    step = release_all(wide_months())[1]
    claim = step.claim
    moved = claim.cohort_of_row.copy()
    moved[0] = claim.cohort_of_row[-2]
    forged = SeriesClaim(claim.own, claim.history, moved, {})
    with pytest.raises(PrivacyViolationError):
        verify(replace(step.release, claim=forged), step.table)


def test_what_a_series_needs_is_said() -> None:
    nobody = replace(SCHEMA, person_id=None)
    with pytest.raises(ConfigError, match="person_id"):
        start_history(METHOD, nobody)
    with pytest.raises(ConfigError, match="l=2:COLUMN"):
        start_history(Mondrian(k=2), SCHEMA)
    with pytest.raises(ConfigError, match="l=2:COLUMN"):
        start_history(Mdav(k=2), SCHEMA)
    twice = [("a", 1, "east", "flu"), ("a", 2, "east", "gout"), ("b", 3, "east", "flu")]
    with pytest.raises(DataError, match="1 people with several rows"):
        release_next(METHOD, table(twice), ["a", "b"], start_history(METHOD, SCHEMA), rng=0)
    step = release_all(wide_months())[0]
    other = Mondrian(k=2, require="l=3:illness")
    with pytest.raises(ConfigError, match="another number of values"):
        release_next(other, step.table, [f"p{i}" for i in range(20)], step.history, rng=0)
