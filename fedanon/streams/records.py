"""RecordStream: an engine of records as a gateway drives it, a reading at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from fedanon.data.coded_column import CodedColumn
from fedanon.streams.base import DROPPED, NOBODY, Arrivals, Departures, RecordMethod
from fedanon.streams.publication import Box, Publication, Reading


class RecordStream:
    """Readings in, publications out.

    Parameters
    ----------
    method : how records are generalized.
    columns : the quasi-identifiers.
    seed : of all that is drawn at random.
    """

    def __init__(self, method: RecordMethod, columns: Sequence[CodedColumn], *, seed: int = 0) -> None:
        self.method, self._engine = method, method.start(columns, seed=seed)
        self._boxes: dict[int, Box] = {}

    @property
    def waiting(self) -> int:
        """Number of readings that wait."""
        return self._engine.waiting

    @property
    def classes(self) -> int:
        """Number of published boxes that may be used again."""
        return self._engine.kept_boxes

    def push(self, readings: Sequence[Reading]) -> list[Publication]:
        """Take in readings; see :class:`fedanon.streams.publication.Engine`."""
        columns = [model.column for model in self.method.required]
        arrivals = Arrivals(
            np.array([reading.point for reading in readings], dtype=np.float64),
            np.array([_person_number(reading.person) for reading in readings], dtype=np.int64),
            np.array([reading.moment for reading in readings], dtype=np.float64),
            {name: np.array([reading.values[name] for reading in readings], dtype=object) for name in columns},
        )
        return self._publications(self._engine.feed(arrivals)) if readings else []

    def advance(self, now: float) -> list[Publication]:
        """Let time pass; see :class:`fedanon.streams.publication.Engine`."""
        return self._publications(self._engine.advance(now))

    def finish(self) -> list[Publication]:
        """Publish or drop all that wait; see :class:`fedanon.streams.publication.Engine`."""
        return self._publications(self._engine.finish())

    def _publications(self, outcome: Departures) -> list[Publication]:
        for name, (low, high) in outcome.boxes.items():
            self._boxes[name] = Box(name, tuple(low.tolist()), tuple(high.tolist()))
        made: list[Publication] = []
        at, (numbers, names, causes) = 0, (part.tolist() for part in outcome[:3])
        while at < len(numbers):
            end = at + 1
            while end < len(numbers) and (names[end], causes[end]) == (names[at], causes[at]):
                end += 1
            box = None if names[at] == DROPPED else self._boxes[names[at]]
            made.append(Publication(box, tuple(numbers[at:end])))
            at = end
        self._forget()
        return made

    def _forget(self) -> None:
        """Forget boxes that cannot be used again."""
        if len(self._boxes) > 2 * self.method.boxes:
            newest = sorted(self._boxes)[-self.method.boxes :]
            kept = set(self._engine.kept_names()) | set(newest)
            self._boxes = {name: box for name, box in self._boxes.items() if name in kept}

    def to_state(self) -> dict[str, Any]:
        """All that decides what is published next; see :class:`fedanon.streams.publication.Engine`."""
        return {"engine": self._engine.to_state(), "boxes": list(self._boxes.values())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; see :class:`fedanon.streams.publication.Engine`."""
        self._engine.restore(state["engine"])
        self._boxes = {label: Box(label, tuple(low), tuple(high)) for label, low, high in state["boxes"]}


def _person_number(person: str) -> int:
    """A number for a person, the same after a restart; two people with one number count as one, which is safe."""
    if not person:
        return NOBODY
    return int.from_bytes(blake2b(person.encode(), digest_size=8).digest(), "big") >> 2
