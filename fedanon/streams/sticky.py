"""StickyEngine: who is in which class, which readings wait, and what leaves when; see :mod:`fedanon.streams.people`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fedanon.data.coded_column import CodedColumn
from fedanon.streams.boxes import loss_of, widened
from fedanon.streams.people import Held, Person, Pool, StickyClass, StickyClasses, pseudonym
from fedanon.streams.publication import Box, Publication, Reading
from fedanon.streams.requirements import published_values
from fedanon.streams.space import make_space

#: how often deadlines and activity are looked at, as a part of the shortest time that matters
SWEEPS = 20
#: people who were away for so many epochs are forgotten
MEMORY = 2


class StickyEngine:
    """The people of a stream.

    Parameters
    ----------
    method : its parameters.
    columns : the quasi-identifiers.
    key : makes pseudonyms; the same key gives the same ones.
    """

    def __init__(self, method: StickyClasses, columns: Sequence[CodedColumn], *, key: bytes) -> None:
        self.method, self.space, self._key = method, make_space(columns), key
        self._people: dict[str, Person] = {}
        self._classes: dict[int, StickyClass] = {}
        self._numbers: dict[str, int] = {}
        self._now, self._epoch, self._next_sweep = float("-inf"), 0, float("-inf")
        self._made = self._runs = self._held = 0
        self._values = published_values(method.required)
        times = [method.active, method.epoch, *([method.delay] if method.delay and not method.align else [])]
        self._sweep_every = min(times) / SWEEPS

    @property
    def waiting(self) -> int:
        """Number of readings that wait."""
        return self._held

    @property
    def classes(self) -> int:
        """Number of classes that are not closed."""
        return len(self._classes)

    @property
    def people(self) -> int:
        """Number of people who are remembered."""
        return len(self._people)

    def push(self, readings: Sequence[Reading]) -> list[Publication]:
        """Take in readings; see :class:`fedanon.streams.publication.Engine`."""
        out: list[Publication] = []
        for reading in readings:
            if reading.moment > self._now:
                self._pass(reading.moment, out)
            self._take(reading, out)
        return out

    def advance(self, now: float) -> list[Publication]:
        """Let time pass; see :class:`fedanon.streams.publication.Engine`."""
        out: list[Publication] = []
        if now > self._now:
            self._pass(now, out)
        return out

    def finish(self) -> list[Publication]:
        """End the stream: readings that wait still, among them those of an epoch that is not over, are dropped."""
        out: list[Publication] = []
        for person in self._people.values():
            self._drop(person, len(person.held), out)
        return out

    # ---- a reading --------------------------------------------------------------------------------

    def _take(self, reading: Reading, out: list[Publication]) -> None:
        person = self._people.get(reading.person)
        if person is None:
            person = self._people[reading.person] = Person(reading.person, reading.point, self._now)
        person.seen = self._now
        if person.point != reading.point:
            self._move(person, reading.point, out)
        if self._values is not None:
            who = self._numbers.setdefault(person.name, len(self._numbers))
            self._values.note(reading.number, who, reading.values)
        group = self._classes.get(person.place)
        if group is not None and group.epoch == self._epoch and not self.method.align:
            self._pass_through(group, person, reading.number, out)
            return
        person.held.append(Held(reading.number, self._now))
        self._held += 1
        if group is not None and not self.method.align:
            group.ready.add(person.name)
            if len(group.ready) >= self.method.k:
                self._start(group, out)

    def _pass_through(self, group: StickyClass, person: Person, number: int, out: list[Publication]) -> None:
        """Publish a reading of a class that has started."""
        if self._values is not None:
            kept = self._values.keep_if_added([number], group.run)
            self._values.settle([number], group.run if kept else -1)
            if not kept:
                out.append(Publication(None, (number,)))
                return
        if person.alias_epoch != self._epoch:
            self._rename(group, person)
        out.append(Publication(group.box, (number,), (person.alias,), self._epoch))

    def _rename(self, group: StickyClass, person: Person) -> None:
        """Give a person the pseudonym of this class and epoch."""
        person.alias = pseudonym(self._key, person.name, group.box.label, self._epoch)
        person.alias_epoch = self._epoch

    def _move(self, person: Person, point: tuple[float, ...], out: list[Publication]) -> None:
        """Take note of other quasi-identifiers; outside the box of the class the person is a newcomer."""
        if person.place < 0:
            # readings that wait were made at another point, which the class to come need not hold
            self._drop(person, len(person.held), out)
        person.point = point
        group = self._classes.get(person.place)
        if group is not None and not group.box.holds(point, point):
            self._take_out(group, person)
        if person.carry is not None and not person.carry.holds(point, point):
            person.strayed = True

    def _take_out(self, group: StickyClass, person: Person) -> None:
        group.people.discard(person.name)
        group.ready.discard(person.name)
        person.place, person.carry, person.strayed = -1, group.box, False

    # ---- time -------------------------------------------------------------------------------------

    def _pass(self, now: float, out: list[Publication]) -> None:
        """Go to a moment; what falls due on the way is done before anything later comes."""
        epoch = int(now // self.method.epoch)
        if self._now == float("-inf"):
            self._epoch, self._next_sweep = epoch, now
        while epoch > self._epoch:
            # the end of the epoch, then the beginning of the next one that somebody is there for
            self._now = max(self._now, (self._epoch + 1) * self.method.epoch)
            if self.method.align:
                self._publish_epoch(out)
            else:
                self._sweep(out)
            idle = not self._held and not self._classes
            self._epoch = epoch if idle else self._epoch + 1
            self._forget()
        # whose time is up before this moment is placed at theirs, also if nothing came in between
        while self._held and not self.method.align and self._next_sweep < now:
            self._now = max(self._now, self._next_sweep)
            self._next_sweep = self._now + self._sweep_every
            self._sweep(out)
        self._now = now
        if now >= self._next_sweep:
            self._next_sweep = now + self._sweep_every
            if not self.method.align:
                self._sweep(out)

    def _sweep(self, out: list[Publication]) -> None:
        """Close classes that are short of people, then place whose time is up."""
        for label in list(self._classes):
            group = self._classes[label]
            overdue = any(self._is_due(self._people[name]) for name in group.ready)
            if overdue or self._active(group) < self.method.k:
                self._close(group)
        pool = self._pool()
        due = [p for p in pool.people if self._is_due(p)] if pool else []
        for person in sorted(due, key=lambda p: p.held[0].number):
            if pool is not None and person.place < 0:
                self._place(person, pool, out)

    def _pool(self) -> Pool | None:
        """Those with readings who are in no class."""
        waiting = [p for p in self._people.values() if p.place < 0 and p.held]
        return Pool(waiting) if waiting else None

    def _is_due(self, person: Person) -> bool:
        # one sweep ahead, so that nothing is late when the next one comes
        return bool(person.held) and person.held[0].moment + self.method.delay <= self._now + self._sweep_every

    def _active(self, group: StickyClass) -> int:
        since = self._now - self.method.active
        return sum(self._people[name].seen >= since for name in group.people)

    def _close(self, group: StickyClass) -> None:
        """End a class: its people go on under other pseudonyms, in classes that hold the whole box."""
        for name in sorted(group.people):
            self._take_out(group, self._people[name])
        del self._classes[group.box.label]

    def _forget(self) -> None:
        """Forget people who were away for long; in a running class nothing is known of them then."""
        since = self._now - max(MEMORY * self.method.epoch, self.method.active)
        for person in [p for p in self._people.values() if p.seen < since and not p.held]:
            if person.place in self._classes:
                self._take_out(self._classes[person.place], person)
            del self._people[person.name]

    # ---- starting and joining ---------------------------------------------------------------------

    def _place(self, person: Person, pool: Pool, out: list[Publication]) -> None:
        """Put somebody into the class that loses least: a running one that holds them, or one that starts now."""
        running = [g for g in self._classes.values() if g.epoch == self._epoch]
        cover, start = self._choose(person, pool, running)
        if start is not None:
            group, people = start
            if self._starts(people):
                self._let_start(group, people, pool)
                group.ready = {each.name for each in people}
                self._start(group, out)
                return
        if cover is None:
            due = sum(held.moment + self.method.delay <= self._now + self._sweep_every for held in person.held)
            self._drop(person, due, out)
            if not person.held:
                pool.take([person])
            return
        self._let_in(cover, person)
        pool.take([person])
        for held in person.held:
            self._pass_through(cover, person, held.number, out)
        self._held -= len(person.held)
        person.held.clear()

    def _choose(
        self, person: Person, pool: Pool, running: Sequence[StickyClass]
    ) -> tuple[StickyClass | None, tuple[StickyClass, list[Person]] | None]:
        """The best running class that holds a person, or None, and one that may start and loses less, or None."""
        low, high = person.extent
        limit = self.method.max_loss + 1e-9
        losses = [(loss_of(self.space, g.box), g) for g in running if g.box.holds(low, high)]
        least, cover = min(losses, key=lambda one: one[0], default=(2.0, None))
        cover = cover if least <= limit else None
        start = pool.best_start(self.space, pool.places[person.name], self.method.k)
        if start is None or start.loss / self.space.width > limit or (cover and start.loss / self.space.width >= least):
            return cover, None
        group = StickyClass(widened(self.space, self._made, start.low, start.high))
        return cover, (group, [pool.people[int(i)] for i in start.members])

    def _let_start(self, group: StickyClass, people: Sequence[Person], pool: Pool) -> None:
        self._made += 1
        self._classes[group.box.label] = group
        for each in people:
            self._let_in(group, each)
        pool.take(people)

    def _let_in(self, group: StickyClass, person: Person) -> None:
        group.people.add(person.name)
        person.place, person.since, person.carry, person.strayed = group.box.label, self._now, None, False
        person.alias_epoch = -1

    def _starts(self, people: Sequence[Person]) -> bool:
        """Whether k, and what is required beyond, would hold if these people start."""
        if sum(bool(person.held) for person in people) < self.method.k:
            return False
        numbers = [held.number for person in people for held in person.held]
        return self._values is None or self._values.keep_if_added(numbers, None)

    def _start(self, group: StickyClass, out: list[Publication]) -> None:
        """Publish all that waits in a class, at once, if its requirements hold; else they wait for more."""
        people = [self._people[name] for name in sorted(group.ready)]
        if self._starts(people):
            self._publish(group, people, out)
            group.epoch = self._epoch

    def _publish(self, group: StickyClass, people: Sequence[Person], out: list[Publication]) -> None:
        numbers, names = list[int](), list[str]()
        group.run = self._runs
        self._runs += 1
        for person in people:
            self._rename(group, person)
            numbers += [held.number for held in person.held]
            names += [person.alias] * len(person.held)
            self._held -= len(person.held)
            person.held.clear()
        group.ready.clear()
        if self._values is not None:
            self._values.settle(numbers, group.run)
        out.append(Publication(group.box, tuple(numbers), tuple(names), self._epoch))

    def _drop(self, person: Person, count: int, out: list[Publication]) -> None:
        """Publish nothing of the first readings that wait."""
        if count:
            numbers = tuple(held.number for held in person.held[:count])
            if self._values is not None:
                self._values.settle(numbers, -1)
            del person.held[:count]
            self._held -= count
            out.append(Publication(None, numbers))

    # ---- whole epochs -----------------------------------------------------------------------------

    def _publish_epoch(self, out: list[Publication]) -> None:
        """Publish the epoch that ends: of people there from its beginning to its end; then form classes for the next.

        Readings of the epoch in which somebody comes or falls silent are dropped.
        """
        begun, since = self._epoch * self.method.epoch, self._now - self.method.active
        for label in list(self._classes):
            group = self._classes[label]
            there = [self._people[name] for name in sorted(group.people)]
            whole = [p for p in there if p.since <= begun and p.seen >= since and p.held]
            if len(whole) >= self.method.k and self._starts(whole):
                self._publish(group, whole, out)
            elif self._active(group) < self.method.k:
                self._close(group)
        for person in self._people.values():
            if person.place >= 0 or person.seen < since:
                self._drop(person, len(person.held), out)
        pool = self._pool()
        for person in sorted(pool.people, key=lambda p: p.held[0].number) if pool else []:
            if pool is not None and person.place < 0:
                cover, start = self._choose(person, pool, list(self._classes.values()))
                if start is not None:
                    self._let_start(*start, pool)
                elif cover is not None:
                    self._let_in(cover, person)
                    pool.take([person])
        for person in self._people.values():
            self._drop(person, len(person.held), out)

    # ---- state ------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """All that decides what is published next; see :class:`fedanon.streams.publication.Engine`."""
        classes = [[g.box, sorted(g.people), g.epoch, sorted(g.ready), g.run] for g in self._classes.values()]
        times = [None if t == float("-inf") else t for t in (self._now, self._next_sweep)]
        return {
            "people": [asdict(person) | {"carry": person.carry} for person in self._people.values()],
            "classes": classes,
            "numbers": self._numbers,
            "times": times,
            "counts": [self._epoch, self._made, self._runs],
            "values": None if self._values is None else self._values.to_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; see :class:`fedanon.streams.publication.Engine`."""
        self._people = {entry["name"]: _person(entry) for entry in state["people"]}
        self._classes = {}
        for box, people, epoch, ready, run in state["classes"]:
            group = StickyClass(_box(box), set(people), epoch, set(ready), run)
            self._classes[group.box.label] = group
        self._numbers = dict(state["numbers"])
        self._now, self._next_sweep = (float("-inf") if t is None else t for t in state["times"])
        self._epoch, self._made, self._runs = state["counts"]
        self._held = sum(len(person.held) for person in self._people.values())
        if self._values is not None:
            self._values.restore(state["values"])


def _person(entry: Mapping[str, Any]) -> Person:
    held = [Held(*one) for one in entry["held"]]
    carry = None if entry["carry"] is None else _box(entry["carry"])
    return Person(**{**entry, "point": tuple(entry["point"]), "carry": carry, "held": held})


def _box(entry: Sequence[Any]) -> Box:
    return Box(int(entry[0]), tuple(entry[1]), tuple(entry[2]))
