"""Attacks on streams: they succeed where the rules are left out, and the rules are what stops them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedanon.attacks.context import AttackContext
from fedanon.attacks.on_streams import STREAM_ATTACKS, StreamIntersection, StreamTiming, WindowHomogeneity
from fedanon.errors import NotApplicableError
from fedanon.streams import replay_people, replay_records
from fedanon.streams.methods.prospect import Prospect
from fedanon.streams.people import StickyClasses
from fedanon.testing.examples import example_release, example_table
from tests.streams.wards import readings, table

RNG = np.random.default_rng(0)


def sticky(**settings: float) -> StickyClasses:
    return StickyClasses(**{"k": 4, "delay": 60.0, "active": 60.0, "epoch": 300.0} | settings)


def test_all_attacks_have_a_name_and_a_meaning() -> None:
    assert STREAM_ATTACKS.names() == ["intersection", "timing", "window_homogeneity"]
    assert all(attack.meaning.endswith(".") for _, attack in STREAM_ATTACKS.items())


def test_intersection_finds_people_by_records_and_nobody_by_sticky_classes() -> None:
    made = table(readings(0, 60, 3000, gap=25.0, absent=0.4))
    times = made.frame["time"].to_numpy()
    records = StreamIntersection().run(AttackContext(made, replay_records(Prospect(k=4, delay=60), made), None), RNG)
    people = StreamIntersection().run(AttackContext(made, replay_people(sticky(), made, times), None), RNG)
    assert records.rate > 2 * records.baseline
    assert records.details["narrowed"] > 0.5
    # boxes only grow along the path of a person, whoever links the pseudonyms
    assert people.rate == pytest.approx(people.baseline)
    assert people.details["narrowed"] == 0.0


def test_timing_finds_pseudonyms_and_aligned_epochs_hide_them() -> None:
    made = table(readings(1, 60, 6000, gap=25.0, absent=0.4))
    times = made.frame["time"].to_numpy()
    attack = StreamTiming(time="time")
    found = {}
    for align in (False, True):
        release = replay_people(sticky(align=align), made, times, time="time", step=60.0 if align else 1.0)
        found[align] = attack.run(AttackContext(made, release, None), RNG)
    assert found[False].rate > 2 * found[False].baseline
    assert found[True].rate / found[True].baseline < found[False].rate / found[False].baseline
    low, high = found[False].interval
    assert low < found[False].rate < high


def test_homogeneity_in_a_window_falls_with_l() -> None:
    frame = readings(2, 80, 3000, gap=25.0)
    frame["pressure"] = frame["pressure"] // 60 * 60
    made = table(frame)
    attack = WindowHomogeneity(windows=5)
    plain = attack.run(AttackContext(made, replay_records(Prospect(k=4, delay=60), made), None), RNG)
    diverse = attack.run(
        AttackContext(made, replay_records(Prospect(k=4, delay=60, require="l=3:pressure"), made), None), RNG
    )
    assert plain.baseline < plain.rate
    assert diverse.rate < plain.rate


def test_attacks_say_where_they_do_not_apply() -> None:
    made = example_table()
    context = AttackContext(made, example_release(made, k=3), None)
    for attack in (StreamIntersection(), StreamTiming(time="age"), WindowHomogeneity()):
        with pytest.raises(NotApplicableError, match="not that of a stream"):
            attack.run(context, RNG)
    wards = table(readings(3, 40, 300))
    release = replay_records(Prospect(k=4, delay=60), wards)
    with pytest.raises(NotApplicableError, match="no pseudonyms"):
        StreamTiming(time="time").run(AttackContext(wards, replace(release), None), RNG)
