"""BufferedEngine: records wait in one buffer; when the time of the oldest is up it starts a class or reuses a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedanon.data.coded_column import CodedColumn
from fedanon.streams.base import DROPPED, NOBODY, Arrivals, Departures, RecordEngine, RecordMethod
from fedanon.streams.requirements import published_values
from fedanon.streams.space import Space, make_space
from fedanon.types import FloatArray, IndexArray


class Buffer(NamedTuple):
    """Waiting records, one slot each; see :mod:`fedanon.streams._buffer`."""

    columns: FloatArray
    person: IndexArray
    number: IndexArray
    moment: FloatArray
    near: FloatArray
    cover: IndexArray
    cover_loss: FloatArray


class Boxes(NamedTuple):
    """Published boxes that may be used again: bounds, loss, class, and the record that used them last."""

    low: FloatArray
    high: FloatArray
    loss: FloatArray
    name: IndexArray
    used: IndexArray


class Rule(NamedTuple):
    """How the class of a record is chosen.

    Parameters
    ----------
    nearest : whether by distance to the record alone, as in FADS, or by prospects.
    k, delay, seconds : see :class:`RecordMethod`.
    max_loss : sum of the losses of all columns above which a record is dropped.
    caution : factor on what a record is expected to lose in a class of its own.
    regret : what the others of a class count beside the record it is formed for.
    reach : number of records that are looked at for a class.
    """

    nearest: bool
    k: int
    delay: float
    seconds: bool
    max_loss: float
    caution: float
    regret: float
    reach: int


class _Notes(NamedTuple):
    """Room for an outcome; ``first`` is the number of the first new class."""

    number: IndexArray
    name: IndexArray
    cause: IndexArray
    low: FloatArray
    high: FloatArray
    loss: FloatArray
    first: int


class BufferedEngine(RecordEngine):
    """Engine of the methods that decide when a record's time is up.

    Parameters
    ----------
    method : its parameters.
    columns : the quasi-identifiers.
    nearest, caution, regret, reach : see :class:`Rule`.
    """

    def __init__(
        self,
        method: RecordMethod,
        columns: Sequence[CodedColumn],
        *,
        nearest: bool = False,
        caution: float = 1.0,
        regret: float = 0.0,
        reach: int = 1,
    ) -> None:
        self.space: Space = make_space(columns)
        q, slots, kept = len(columns), method.capacity, method.boxes
        seconds = method.clock == "seconds"
        limit = method.max_loss * q + 1e-9
        # a whole number in a gateway.toml must not make kernels of another type
        weights = float(caution), float(regret)
        self._rule = Rule(nearest, method.k, method.patience, seconds, limit, *weights, reach)
        self._buffer = Buffer(
            np.zeros((q, slots)),
            np.full(slots, NOBODY, dtype=np.int64),
            np.zeros(slots, dtype=np.int64),
            np.zeros(slots),
            np.zeros(slots),
            np.zeros(slots, dtype=np.int64),
            np.zeros(slots),
        )
        self._boxes = Boxes(
            np.zeros((kept, q)),
            np.zeros((kept, q)),
            np.zeros(kept),
            np.zeros(kept, dtype=np.int64),
            np.zeros(kept, dtype=np.int64),
        )
        self._tally, self._ratio = np.zeros(3, dtype=np.int64), np.zeros(2)
        self._taken = 0
        self._values = published_values(method.required)
        # two boxes with the same cells are one class to an observer: the first class of given cells, and of each class
        self._cells: dict[tuple[float, ...], int] = {}
        self._same: dict[int, int] = {}

    @property
    def waiting(self) -> int:
        """Number of records that wait."""
        return int(self._tally[0])

    @property
    def kept_boxes(self) -> int:
        """Number of published boxes that may be used again."""
        return int(self._tally[1])

    def kept_names(self) -> list[int]:
        """Numbers of the classes whose boxes may be used again."""
        return [int(name) for name in self._boxes.name[: self.kept_boxes]]

    def feed(self, arrivals: Arrivals) -> Departures:
        """Take in records; see :class:`RecordEngine`."""
        first, count = self._taken, len(arrivals.points)
        self._taken += count
        if self._values is not None:
            return self._feed_checked(arrivals, first)
        from fedanon.streams._deadlines import run

        notes = self._room(count)
        persons = np.ascontiguousarray(arrivals.persons, dtype=np.int64)
        points, moments = np.ascontiguousarray(arrivals.points), np.ascontiguousarray(arrivals.moments, dtype=float)
        done = run(*self._state, self._rule, points, persons, first, moments, notes)
        return self._outcome(notes, done)

    def advance(self, now: float) -> Departures:
        """Let time pass; see :class:`RecordEngine`."""
        return self._expire(now, everything=False)

    def finish(self) -> Departures:
        """Publish or drop all that wait; see :class:`RecordEngine`."""
        return self._expire(0.0, everything=True)

    def _expire(self, now: float, *, everything: bool) -> Departures:
        from fedanon.streams._deadlines import expire_due

        notes = self._room(0)
        if self._values is None:
            done = expire_due(*self._state, self._rule, now, everything, notes)
        else:
            done = self._expire_checked(notes, 0, now, everything=everything)
        return self._outcome(notes, done)

    @property
    def _state(self) -> tuple[Space, Buffer, Boxes, IndexArray, FloatArray]:
        return self.space, self._buffer, self._boxes, self._tally, self._ratio

    def _room(self, count: int) -> _Notes:
        size, q = self.waiting + count, self.space.width
        classes = size // self._rule.k + 1
        number, name, cause = np.zeros((3, size), dtype=np.int64)
        bounds = np.zeros((classes, q)), np.zeros((classes, q))
        return _Notes(number, name, cause, *bounds, np.zeros(classes), int(self._tally[2]))

    def _outcome(self, notes: _Notes, done: int) -> Departures:
        made = range(int(self._tally[2]) - notes.first)
        boxes = {notes.first + i: (notes.low[i], notes.high[i]) for i in made}
        return Departures(notes.number[:done], notes.name[:done], notes.cause[:done], boxes)

    # ---- with requirements, a record at a time ----------------------------------------------------

    def _feed_checked(self, arrivals: Arrivals, first: int) -> Departures:
        from fedanon.streams._buffer import arrive

        assert self._values is not None
        notes, done = self._room(len(arrivals.points)), 0
        for i, point in enumerate(arrivals.points):
            now = float(arrivals.moments[i])
            if self._rule.seconds or self.waiting == len(self._buffer.number):
                done = self._expire_checked(notes, done, now, number=first + i, full=len(self._buffer.number))
            person = int(arrivals.persons[i])
            self._values.note(first + i, person, {name: v[i] for name, v in arrivals.values.items()})
            arrive(self._buffer, self._boxes, self._tally, point, person, first + i, now)
            done = self._expire_checked(notes, done, now, number=first + i)
        return self._outcome(notes, done)

    def _expire_checked(
        self, notes: _Notes, done: int, now: float, *, number: int = 0, full: int = 0, everything: bool = False
    ) -> int:
        from fedanon.streams._buffer import oldest
        from fedanon.streams._deadlines import is_due

        while (slot := int(oldest(self._buffer, self._tally))) >= 0:
            crowded = bool(full) and self.waiting == full
            timed = (number > 0 or self._rule.seconds) and is_due(self._buffer, slot, self._rule, number, now)
            if not (everything or crowded or timed):
                break
            done = self._place(notes, done, slot)
        return done

    def _place(self, notes: _Notes, done: int, slot: int) -> int:
        """Publish or drop the record in a slot, as far as the requirements allow."""
        from fedanon.streams._buffer import CLASS, leave
        from fedanon.streams._deadlines import decide, publish_class

        assert self._values is not None
        buffer, number = self._buffer, int(self._buffer.number[slot])
        action, members, low, high, loss = decide(self.space, buffer, self._tally, self._ratio, self._rule, slot)
        cover = int(buffer.cover[slot]) if buffer.cover_loss[slot] <= self._rule.max_loss else -1
        name = int(self._boxes.name[cover]) if cover >= 0 else DROPPED
        reusable = cover >= 0 and self._values.keep_if_added([number], self._same[name])
        grown = None
        if (action == CLASS or not reusable) and loss < np.inf:
            grown = self._grow(members, low, high)
        if grown is None:
            notes.number[done], notes.cause[done] = number, number
            notes.name[done] = name if reusable else DROPPED
            if reusable:
                self._boxes.used[cover] = number
            self._values.settle([number], self._same[name] if reusable else DROPPED)
            leave(buffer, self._tally, slot)
            return done + 1
        numbers = publish_class(self.space, buffer, self._boxes, self._tally, *grown)
        name = int(self._tally[2]) - 1
        at = name - notes.first
        notes.low[at], notes.high[at], notes.loss[at] = grown[1:]
        notes.number[done : done + len(numbers)] = numbers
        notes.name[done : done + len(numbers)], notes.cause[done : done + len(numbers)] = name, number
        self._same[name] = self._cells.setdefault(_key(grown[1], grown[2]), name)
        self._values.settle(numbers.tolist(), self._same[name])
        return done + len(numbers)

    def _grow(
        self, members: IndexArray, low: FloatArray, high: FloatArray
    ) -> tuple[IndexArray, FloatArray, FloatArray, float] | None:
        """Add records to a class until it keeps the requirements; None if that would lose too much."""
        from fedanon.streams._buffer import box_loss, growth, widen

        assert self._values is not None
        buffer, chosen = self._buffer, members.tolist()
        low, high = low.copy(), high.copy()
        while True:
            loss = float(box_loss(self.space, low, high))
            if loss > self._rule.max_loss:
                return None
            numbers = buffer.number[chosen].tolist()
            widen(self.space, low, high)
            if self._values.keep_if_added(numbers, self._cells.get(_key(low, high))):
                return np.array(chosen, dtype=np.int64), low, high, loss
            cost = growth(self.space, buffer.columns, self.waiting, low, high)
            cost[chosen] = np.inf
            people = buffer.person[chosen]
            cost[np.isin(buffer.person[: self.waiting], people[people != NOBODY])] = np.inf
            rare = self._values.rare_in(numbers, buffer.number[: self.waiting])
            best = int(np.argmin(np.where(rare, cost, np.inf)))
            if not (rare[best] and cost[best] < np.inf):
                return None
            chosen.append(best)
            low = np.minimum(low, buffer.columns[:, best])
            high = np.maximum(high, buffer.columns[:, best])

    # ---- state ------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """All that decides what is published next; see :class:`RecordEngine`."""
        m, kept = self.waiting, self.kept_boxes
        return {
            "buffer": [part[..., :m].tolist() for part in self._buffer],
            "boxes": [part[:kept].tolist() for part in self._boxes],
            "tally": self._tally.tolist(),
            "ratio": self._ratio.tolist(),
            "taken": self._taken,
            "values": None if self._values is None else self._values.to_state(),
            "cells": [[list(key), name] for key, name in self._cells.items()],
            "same": list(self._same.items()),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; see :class:`RecordEngine`."""
        self._tally[:], self._ratio[:], self._taken = state["tally"], state["ratio"], int(state["taken"])
        for part, held in zip(self._buffer, state["buffer"], strict=True):
            part[..., : self.waiting] = held
        for part, held in zip(self._boxes, state["boxes"], strict=True):
            part[: self.kept_boxes] = np.asarray(held).reshape(part[: self.kept_boxes].shape)
        if self._values is not None:
            self._values.restore(state["values"])
        self._cells = {tuple(key): name for key, name in state["cells"]}
        self._same = dict(map(tuple, state["same"]))


def _key(low: FloatArray, high: FloatArray) -> tuple[float, ...]:
    return (*low.tolist(), *high.tolist())
