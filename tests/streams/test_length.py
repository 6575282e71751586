"""At length: people who leave and come back for millions of readings, recounted from the publications alone."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from fedanon.streams.methods.prospect import Prospect
from fedanon.streams.people import StickyClasses
from fedanon.streams.publication import Publication, Reading
from fedanon.streams.records import RecordStream
from fedanon.streams.space import box_texts, coded_columns
from fedanon.streams.sticky import StickyEngine
from tests.streams.recount import Combinations
from tests.streams.wards import QUASI, UNITS, schema

#: readings of the long run; FEDANON_READINGS takes another number
LENGTH = int(os.environ.get("FEDANON_READINGS", "10000000"))
#: seconds without a reading after which somebody has come back
AWAY = 600.0


class Recount:
    """Pseudonyms by (epoch, class) and boxes by pseudonym; only of the last epochs, as the others are over."""

    def __init__(self, k: int) -> None:
        self.k, self.violations, self.published = k, 0, 0
        self.seen: dict[tuple[int, int], set[str]] = {}
        self.boxes: dict[str, tuple[object, ...]] = {}

    def add(self, publications: list[Publication]) -> None:
        for publication in publications:
            if publication.box is None:
                continue
            key = (publication.epoch, publication.box.label)
            names = self.seen.setdefault(key, set())
            names.update(publication.pseudonyms)
            self.violations += len(names) < self.k
            for name in publication.pseudonyms:
                self.violations += self.boxes.setdefault(name, (key, publication.box)) != (key, publication.box)
            self.published += len(publication.numbers)

    def forget(self, epoch: int) -> None:
        old = [key for key in self.seen if key[0] < epoch]
        for key in old:
            for name in self.seen.pop(key):
                self.boxes.pop(name, None)


def pieces(people: int, count: int, size: int) -> Iterator[list[Reading]]:
    """Readings two seconds apart per person on average; everybody is away for stretches of hours, and ages."""
    rng = np.random.default_rng(0)
    age, unit = rng.integers(0, 95, people), rng.integers(0, len(UNITS), people)
    number, now = 0, 0.0
    until = rng.exponential(7200.0, people)
    here = rng.random(people) < 0.7
    while number < count:
        due = until < now
        here[due] = ~here[due]
        until[due] = now + rng.exponential(np.where(here[due], 14400.0, 7200.0))
        age[rng.integers(0, people, 1)] += rng.random() < 0.02
        present = np.flatnonzero(here)
        who = rng.choice(present, size).tolist()
        piece = []
        for i, person in enumerate(who):
            moment = now + 60.0 * i / size
            piece.append(Reading(number + i, f"p{person}", (float(age[person]), float(unit[person])), moment, {}))
        now += 60.0
        number += size
        yield piece


@pytest.mark.parametrize("count", [60_000, pytest.param(LENGTH, marks=pytest.mark.slow)])
def test_no_class_is_short_and_no_pseudonym_has_two_boxes(count: int) -> None:
    method = StickyClasses(k=5, delay=1800, active=3600, epoch=21600)
    engine, recount = StickyEngine(method, coded_columns(schema()), key=b"long"), Recount(5)
    size = 500 if count < 1_000_000 else 2000
    for piece in pieces(400, count, size):
        recount.add(engine.push(piece))
        recount.forget(int(piece[-1].moment // method.epoch) - 1)
    assert recount.violations == 0
    assert recount.published > 0.5 * count
    assert engine.people <= 400


@pytest.mark.parametrize("count", [20_000, pytest.param(LENGTH, marks=pytest.mark.slow)])
def test_no_combination_of_cells_is_ever_short_of_people(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Records of 400 people who leave and come back, recounted from the texts of their cells."""
    columns = coded_columns(schema())
    stream, recount = RecordStream(Prospect(k=5, delay=500, boxes=512), columns), Combinations(QUASI, 5)
    who: dict[int, str] = {}
    size = 500 if count < 1_000_000 else 2000
    last: dict[str, float] = {}
    taken = returns = 0
    for piece in pieces(400, count, size):
        taken += len(piece)
        for reading in piece:
            who[reading.number] = reading.person
            returns += reading.moment - last.get(reading.person, reading.moment) > AWAY
            last[reading.person] = reading.moment
        for publication in stream.push(piece):
            people = [who.pop(number) for number in publication.numbers]
            if publication.box is not None:
                cells = box_texts(columns, np.array(publication.box.low), np.array(publication.box.high))
                recount.add([{**cells, "_person": person} for person in people])
    with capsys.disabled():
        print(
            f"\n{taken:,} records of {len(last)} people, who came back {returns:,} times after "
            f"{AWAY / 60:g} minutes or more: "
            f"{recount.messages:,} published in {len(recount.enough):,} combinations, {recount.violations} violations"
        )
    assert recount.violations == 0
    assert recount.messages > 0.9 * (count - 500)
    assert returns > count / 20_000
    assert len(who) == stream.waiting
