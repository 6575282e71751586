"""Readings that come, and publications that leave: what an engine and a gateway say to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Reading(NamedTuple):
    """A reading as an engine sees it.

    Parameters
    ----------
    number : counted from the beginning of the stream.
    person : who it is of; '' if that is not known.
    point : coordinates of the quasi-identifiers.
    moment : when it came, in seconds.
    values : the sensitive values that requirements are about, by column.
    """

    number: int
    person: str
    point: tuple[float, ...]
    moment: float
    values: Mapping[str, Any]


class Box(NamedTuple):
    """What is published of the quasi-identifiers of a class: its number, and lowest and highest coordinates."""

    label: int
    low: tuple[float, ...]
    high: tuple[float, ...]

    def holds(self, low: Sequence[float], high: Sequence[float]) -> bool:
        """Whether the box low..high lies inside."""
        return all(a <= b for a, b in zip(self.low, low, strict=True)) and all(
            a <= b for a, b in zip(high, self.high, strict=True)
        )


class Publication(NamedTuple):
    """Readings that are published at once, under one box.

    Parameters
    ----------
    box : of their class; None if nothing of the readings is published, now or ever.
    numbers : of the readings.
    pseudonyms : of each, where the readings of a person stay one series.
    epoch : number of the epoch of the pseudonyms.
    """

    box: Box | None
    numbers: tuple[int, ...]
    pseudonyms: tuple[str, ...] = ()
    epoch: int = 0


class Engine(Protocol):
    """What decides when and under which box a reading is published.

    It is deterministic: the same calls give the same publications, before and after it was restored from its state.
    """

    def push(self, readings: Sequence[Reading]) -> list[Publication]:
        """Take in readings in the order of their numbers."""

    def advance(self, now: float) -> list[Publication]:
        """Let time pass without a reading."""

    def finish(self) -> list[Publication]:
        """Publish or drop all that wait: the stream has ended."""

    @property
    def waiting(self) -> int:
        """Number of readings that wait."""

    def to_state(self) -> dict[str, Any]:
        """All that decides what is published next, as JSON can hold it."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
