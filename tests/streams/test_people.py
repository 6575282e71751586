"""Sticky classes: the claim recounted from pseudonyms alone, people who leave and come back, the rules of the path."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.data.spans import points
from fedanon.data.table import Table
from fedanon.errors import ConfigError, PrivacyViolationError, SchemaError
from fedanon.streams import replay_people
from fedanon.streams.claims import PeopleClaim
from fedanon.streams.people import StickyClasses
from fedanon.streams.publication import Box, Publication, Reading
from fedanon.streams.space import coded_columns
from fedanon.streams.sticky import StickyEngine
from tests.streams.recount import broken_pseudonyms, fewest_values
from tests.streams.wards import QUASI, messages, readings, schema, table

KEY = b"test"


def method(**settings: Any) -> StickyClasses:
    return StickyClasses(**{"k": 4, "delay": 60.0, "active": 60.0, "epoch": 300.0} | settings)


def as_readings(made: Table) -> list[Reading]:
    where, times = points(made).tolist(), made.frame["time"].tolist()
    pressure, who = made.frame["pressure"].tolist(), made.person_of_row
    return [Reading(i, f"p{who[i]}", tuple(where[i]), times[i], {"pressure": pressure[i]}) for i in range(len(made))]


def run(chosen: StickyClasses, made: Table) -> list[Publication]:
    engine = StickyEngine(chosen, made.columns, key=KEY)
    return [*engine.push(as_readings(made)), *engine.finish()]


def paths(made: Table, publications: list[Publication]) -> dict[int, list[Box]]:
    """The boxes of every person, in order."""
    found: dict[int, list[Box]] = {}
    assert made.persons is not None
    for publication in publications:
        for number in publication.numbers if publication.box else ():
            path = found.setdefault(int(made.persons[number]), [])
            if publication.box is not None and (not path or path[-1] != publication.box):
                path.append(publication.box)
    return found


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    people=st.integers(3, 40),
    align=st.booleans(),
    birthdays=st.sampled_from([0.0, 0.002]),
)
def test_every_class_and_epoch_has_k_pseudonyms_at_every_moment(
    seed: int, people: int, align: bool, birthdays: float
) -> None:
    made = table(readings(seed, people, 900, gap=25.0, absent=0.4, birthdays=birthdays))
    publications = run(method(align=align), made)
    shown = messages(made, publications)
    assert broken_pseudonyms(shown, QUASI, 4) == 0
    owners = {(m["pseudonym"], m["_person"]) for batch in shown for m in batch}
    assert len(owners) == len({name for name, _ in owners}), "a pseudonym is of one person"
    assert sorted(n for p in publications for n in p.numbers) == list(range(len(made)))
    where = points(made)
    assert all(p.box.holds(where[n], where[n]) for p in publications if p.box for n in p.numbers), "cells are true"


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), people=st.integers(6, 40))
def test_boxes_only_grow_along_the_path_of_a_person(seed: int, people: int) -> None:
    """Who links all pseudonyms of a person learns no more than the first box."""
    made = table(readings(seed, people, 900, gap=25.0, absent=0.4))
    for path in paths(made, run(method(epoch=100_000.0), made)).values():
        for old, new in pairwise(path):
            assert new.holds(old.low, old.high)


def test_people_do_change_classes() -> None:
    """The two tests above would also pass if nothing ever closed."""
    made = table(readings(0, 40, 4000, gap=25.0, absent=0.4))
    publications = run(method(epoch=100_000.0), made)
    assert max(map(len, paths(made, publications).values())) > 1
    assert sum(p.box is not None for p in publications) > len(made) / 3


def engine_at(chosen: StickyClasses) -> StickyEngine:
    return StickyEngine(chosen, coded_columns(schema()), key=KEY)


def start(engine: StickyEngine, ages: list[float], moment: float = 0.0, first: int = 0) -> list[Publication]:
    """People of these ages begin at once; the class starts when the first has waited long enough."""
    given = [Reading(first + i, f"a{first + i}", (age, 0.0), moment, {"pressure": i}) for i, age in enumerate(ages)]
    assert [p for p in engine.push(given) if p.box is not None] == []
    return engine.advance(moment + engine.method.delay)


def test_newcomers_start_together_and_then_pass_through() -> None:
    engine = engine_at(method())
    (begun,) = start(engine, [30, 32, 34, 38])
    assert begun.box is not None
    assert begun.box.low[0] == 30
    assert begun.box.high[0] == 38
    assert len(set(begun.pseudonyms)) == 4
    (passed,) = engine.push([Reading(4, "a2", (34.0, 0.0), 61.0, {"pressure": 1})])
    assert passed.pseudonyms == (begun.pseudonyms[begun.numbers.index(2)],)


def test_a_newcomer_outside_every_box_waits_and_one_inside_joins_under_the_same_box() -> None:
    engine = engine_at(method(active=200.0))
    (begun,) = start(engine, [30, 32, 34, 38])
    outside = Reading(4, "out", (39.0, 0.0), 61.0, {"pressure": 1})
    inside = Reading(5, "in", (35.0, 0.0), 61.0, {"pressure": 1})
    assert engine.push([outside, inside]) == []
    keep = [
        Reading(6 + i, f"a{i}", (age, 0.0), 100.0, {"pressure": 1}) for i, age in enumerate([30.0, 32.0, 34.0, 38.0])
    ]
    engine.push(keep)
    late = engine.advance(121.0)
    assert [(p.box, p.numbers) for p in late] == [(None, (4,)), (begun.box, (5,))]


def test_those_left_are_not_topped_up_with_one_newcomer() -> None:
    """Three left over and one newcomer outside their box are four people, but the box would grow for the newcomer."""
    engine = engine_at(method(k=4))
    start(engine, [30, 32, 34, 38])
    left = [Reading(4 + i, f"a{i}", (age, 0.0), 150.0, {"pressure": 1}) for i, age in enumerate([30.0, 32.0, 34.0])]
    out = engine.push([*left, Reading(8, "new", (60.0, 0.0), 150.0, {"pressure": 1})])
    assert all(p.box is None for p in [*out, *engine.advance(220.0)])


def test_those_left_go_on_with_newcomers_inside_their_box_or_with_k_newcomers() -> None:
    for others in ([36.0], [60.0, 61.0, 62.0, 63.0]):
        engine = engine_at(method(k=4))
        (begun,) = start(engine, [30, 32, 34, 38])
        assert begun.box is not None
        left = [Reading(4 + i, f"a{i}", (age, 0.0), 150.0, {"pressure": 1}) for i, age in enumerate([30.0, 32.0, 34.0])]
        new = [Reading(8 + i, f"n{i}", (age, 0.0), 150.0, {"pressure": 1}) for i, age in enumerate(others)]
        begun_again = [p for p in [*engine.push([*left, *new]), *engine.advance(215.0)] if p.box is not None]
        for publication in begun_again:
            assert publication.box is not None
            if set(publication.numbers) & {4, 5, 6}:
                assert publication.box.holds(begun.box.low, begun.box.high)
                assert not set(publication.pseudonyms) & set(begun.pseudonyms)
        assert {4, 5, 6} <= {n for p in begun_again for n in p.numbers}


def test_a_new_epoch_renews_all_pseudonyms_at_once() -> None:
    engine = engine_at(method(active=300.0))
    (begun,) = start(engine, [30, 32, 34, 38])
    again = [
        Reading(4 + i, f"a{i}", (age, 0.0), 301.0 + i, {"pressure": 1}) for i, age in enumerate([30.0, 32, 34, 38])
    ]
    engine.push([Reading(9, f"a{i}", (age, 0.0), 290.0, {"pressure": 1}) for i, age in enumerate([30.0, 32, 34, 38])])
    assert engine.push(again[:3]) == []
    (renewed,) = engine.push(again[3:])
    assert renewed.epoch == 1
    assert len(renewed.numbers) == 4
    assert renewed.box == begun.box
    assert not set(renewed.pseudonyms) & set(begun.pseudonyms)


def test_aligned_epochs_hold_back_who_came_or_fell_silent_in_them() -> None:
    engine = engine_at(method(align=True, active=100.0))
    ages = [30.0, 32.0, 34.0, 36.0, 38.0]
    number = 0

    def read(names: range, moment: float) -> list[Publication]:
        nonlocal number
        given = [Reading(number + i, f"a{n}", (ages[n], 0.0), moment, {"pressure": 1}) for i, n in enumerate(names)]
        number += len(given)
        return engine.push(given)

    read(range(5), 10.0)
    read(range(5), 290.0)  # the epoch in which they came
    first = read(range(5), 310.0)
    assert all(p.box is None for p in first)
    read(range(5), 350.0)
    read(range(4), 590.0)  # the fifth fell silent
    (shown,) = [p for p in read(range(4), 610.0) if p.box is not None]
    assert len(set(shown.pseudonyms)) == 4
    assert len(shown.numbers) == 4 * 3


def test_nothing_waits_longer_than_the_delay() -> None:
    made = table(readings(3, 60, 3000, gap=40.0))
    given = as_readings(made)
    engine, came = StickyEngine(method(), made.columns, key=KEY), [r.moment for r in given]
    for reading in given:
        for publication in engine.advance(reading.moment) + engine.push([reading]):
            # what fell due since the last reading left at its own time
            assert publication.box is None or max(came[n] for n in publication.numbers) <= reading.moment
        oldest = min((h.moment for p in engine._people.values() for h in p.held), default=reading.moment)
        assert reading.moment - oldest <= 60.0


def test_batches_and_restarts_change_nothing() -> None:
    made = table(readings(5, 40, 2000, gap=25.0))
    for chosen in (method(), method(align=True), method(require="l=2:pressure")):
        engine, given, pieces = StickyEngine(chosen, made.columns, key=KEY), as_readings(made), []
        for i in range(0, len(given), 111):
            pieces += engine.push(given[i : i + 111])
            state = json.loads(json.dumps(engine.to_state()))
            engine = StickyEngine(chosen, made.columns, key=KEY)
            engine.restore(state)
        assert [*pieces, *engine.finish()] == run(chosen, made)


def test_l_holds_in_every_class_at_every_publication() -> None:
    frame = readings(6, 60, 2000, gap=25.0)
    frame["pressure"] = (frame["pressure"] // 90) * 90
    made = table(frame)
    for chosen in (method(require="l=2:pressure"), method(require="l=2:pressure", align=True)):
        shown = [[m | {"age": (m["epoch"], m["class"])} for m in batch] for batch in messages(made, run(chosen, made))]
        assert fewest_values(shown, ["age"], "pressure") >= 2


def test_a_replay_passes_the_gate_and_a_kept_pseudonym_does_not() -> None:
    made = table(readings(7, 40, 2000, gap=25.0))
    release = replay_people(method(), made, made.frame["time"].to_numpy(), key=KEY, time="time")
    assert release.promise.startswith("at every moment, in every epoch")
    assert (release.passthrough["time"] % 60 == 0).all()
    assert {"pseudonym", "epoch"} <= set(release.to_frame().columns)
    assert release.pseudonyms is not None
    names = release.pseudonyms.copy()
    labels = release.groups.labels
    one, other = (np.flatnonzero(labels == label)[0] for label in (0, labels.max()))
    names[other] = names[one]
    object.__setattr__(release, "pseudonyms", names)
    with pytest.raises(PrivacyViolationError, match="1 have several boxes"):
        PeopleClaim(4).check(release, made)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least as long as their 'delay'"):
        method(epoch=30.0)
    with pytest.raises(ConfigError, match="would close as they start"):
        method(active=30.0)
    with pytest.raises(ConfigError, match="is neither"):
        method(require="k_map=3:people.csv")
    made = table(readings(7, 40, 50), person_id=None, one_row_per_person=False)
    with pytest.raises(SchemaError, match="name a person_id"):
        replay_people(method(), made, made.frame["time"].to_numpy())
