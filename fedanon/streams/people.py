"""Sticky classes: the readings of a person stay one series under one box, shared with at least k people.

Newcomers wait; when the time of a reading is up, a class starts that takes in at least k people at once. A class starts
every epoch anew, under fresh pseudonyms. It closes when fewer than k of its people are active, and those left go to a
class whose box holds the whole old one, so that boxes only grow along a person's path. docs/explanation/streams.md says
which attack each rule answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fedanon.errors import ConfigError
from fedanon.fields import check_fields, parameter
from fedanon.streams.boxes import grow
from fedanon.streams.publication import Box
from fedanon.streams.requirements import sensitive_models
from fedanon.streams.space import Space
from fedanon.types import BoolArray, FloatArray, IndexArray

if TYPE_CHECKING:
    from fedanon.privacy.sensitive import SensitiveModel


@dataclass(frozen=True, kw_only=True)
class StickyClasses:
    """Parameters of sticky classes; times are in seconds."""

    k: int = parameter(help="least number of people in a class", at_least=2)
    delay: float = parameter(3600.0, help="how long a reading may wait", at_least=0)
    active: float = parameter(3600.0, help="a person is active so long after a reading", at_least=1)
    epoch: float = parameter(86400.0, help="after so long all pseudonyms are renewed", at_least=1)
    align: bool = parameter(False, help="publish whole epochs, of people who were there from beginning to end")
    max_loss: float = parameter(1.0, help="mean loss above which no class is formed", at_least=0, at_most=1)
    require: str = parameter("", help="what classes must satisfy beyond k, such as l=2:diagnosis")
    buffer: int = parameter(1_000_000, help="most readings that wait before no more are taken in", at_least=1)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.epoch < self.delay:
            raise ConfigError("The 'epoch' of sticky classes must be at least as long as their 'delay'.")
        if self.active < self.delay and not self.align:
            raise ConfigError(
                "The 'active' of sticky classes must not be below 'delay'; they would close as they start."
            )
        if self.align and self.epoch < self.active:
            raise ConfigError("With align = true, the 'epoch' must be at least as long as 'active'.")
        sensitive_models(self.require, self.k)  # so that a wrong one is reported

    @cached_property
    def required(self) -> tuple[SensitiveModel, ...]:
        """The models that are required beyond k, each about a sensitive column."""
        return sensitive_models(self.require, self.k)


class Held(NamedTuple):
    """A reading that waits."""

    number: int
    moment: float


@dataclass(slots=True)
class Person:
    """Somebody whose readings come.

    Parameters
    ----------
    name : who it is; never published.
    point : coordinates as of the last reading.
    seen : when that came.
    place : number of the class, -1 if none.
    since : when the person came into it.
    carry : the box of the last class, which the next one has to hold.
    strayed : whether the point has left ``carry`` since.
    held : readings that wait.
    alias, alias_epoch : the pseudonym, and the epoch it was made for.
    """

    name: str
    point: tuple[float, ...]
    seen: float
    place: int = -1
    since: float = 0.0
    carry: Box | None = None
    strayed: bool = False
    held: list[Held] = field(default_factory=list)
    alias: str = ""
    alias_epoch: int = -1

    @property
    def is_new(self) -> bool:
        """Whether the person counts as a newcomer, of whom k are needed to start a class."""
        return self.carry is None or self.strayed

    @property
    def extent(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """What the person's class has to hold: the point, and the whole box of the last class."""
        if self.carry is None:
            return self.point, self.point
        low = tuple(map(min, self.point, self.carry.low))
        return low, tuple(map(max, self.point, self.carry.high))


@dataclass(slots=True)
class StickyClass:
    """People published under one box.

    Parameters
    ----------
    box : what is published.
    people : names of those in it.
    epoch : the last epoch in which it has started.
    ready : names of those with a reading that waits for the start.
    run : number of the start, for what is counted in an (epoch, class).
    """

    box: Box
    people: set[str] = field(default_factory=set)
    epoch: int = -1
    ready: set[str] = field(default_factory=set)
    run: int = -1


def pseudonym(key: bytes, person: str, label: int, epoch: int) -> str:
    """The name under which a person is published in a class and an epoch; without the key it says nothing."""
    return blake2b(f"{label}:{epoch}:{person}".encode(), key=key, digest_size=8).hexdigest()


# ---- Who starts a class together -----------------------------------------------------------------


class Start(NamedTuple):
    """People who start a class: places in the pool, and the box before it is widened with its loss."""

    members: IndexArray
    low: FloatArray
    high: FloatArray
    loss: float


class Pool:
    """Those who wait for a class.

    Parameters
    ----------
    people : in order.
    """

    def __init__(self, people: Sequence[Person]) -> None:
        self.people = list(people)
        self.places = {person.name: i for i, person in enumerate(self.people)}
        extents = np.array([person.extent for person in self.people])  # person, low or high, column
        self._low, self._high = np.ascontiguousarray(extents[:, 0]), np.ascontiguousarray(extents[:, 1])
        self._new = np.array([person.is_new for person in self.people])
        self._free = np.ones(len(self.people), dtype=bool)

    def take(self, people: Iterable[Person]) -> None:
        """Take note that people have found a class, or have no reading left."""
        for person in people:
            self._free[self.places[person.name]] = False

    def best_start(self, space: Space, seed: int, k: int) -> Start | None:
        """The class with the least loss that may start with the person at place ``seed``, or None.

        Newcomers are at least k, or none, or all inside the old boxes; the box holds every old box whole.
        """
        new = self._new & self._free
        tries = [self._grow(space, seed, new, k if new[seed] else k + 1)]
        if not new[seed]:
            tries.append(self._of_old_boxes(space, seed, k))
        found = [one for one in tries if one is not None]
        return min(found, key=lambda one: one.loss, default=None)

    def _of_old_boxes(self, space: Space, seed: int, k: int) -> Start | None:
        """People left over from closed classes, and whoever is inside their boxes; as few old boxes as reach k."""
        for size in range(1, k + 1):
            found = self._grow(space, seed, ~self._new & self._free, size)
            if found is None:
                return None
            inside = self._free & (self._low >= found.low).all(axis=1) & (self._high <= found.high).all(axis=1)
            inside[found.members] = True
            if inside.sum() >= k:
                return found._replace(members=np.flatnonzero(inside))
        return None

    def _grow(self, space: Space, seed: int, allowed: BoolArray, size: int) -> Start | None:
        start = Start(*grow(space, self._low, self._high, seed, allowed, size))
        return start if len(start.members) else None
