"""RecordMethod: how a stream of records is generalized, each within its delay.

A method is a set of parameters; :meth:`RecordMethod.start` makes the engine that holds the waiting records. An engine
is deterministic: the same records in the same order, and the same seed, give the same publications, however they are
cut into batches. That is what lets a gateway repeat them after a crash.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from fedanon.data.coded_column import CodedColumn
from fedanon.errors import ConfigError
from fedanon.fields import check_fields, parameter
from fedanon.streams.requirements import sensitive_models
from fedanon.types import AnyArray, FloatArray, IndexArray

if TYPE_CHECKING:
    from fedanon.privacy.sensitive import SensitiveModel

#: the person of a record of which nobody is known
NOBODY = -1
#: seconds before its deadline at which a record leaves: twice what a gateway waits between two looks at the clock
EARLY = 0.5
#: the class of a record that is not published
DROPPED = -1


class Arrivals(NamedTuple):
    """Records in the order they came.

    Parameters
    ----------
    points : coordinates, one row per record.
    persons : number of the person of each, or :data:`NOBODY`.
    moments : when each came, in seconds; never decreasing.
    values : the sensitive values that requirements are about, by column.
    """

    points: FloatArray
    persons: IndexArray
    moments: FloatArray
    values: Mapping[str, AnyArray]

    def part(self, begin: int, end: int) -> Arrivals:
        """Some of them."""
        values = {name: column[begin:end] for name, column in self.values.items()}
        return Arrivals(self.points[begin:end], self.persons[begin:end], self.moments[begin:end], values)


class Departures(NamedTuple):
    """Records that were published or dropped, in the order in which that happened.

    Parameters
    ----------
    number : of each record, counted from the beginning of the stream.
    name : number of the class it was published in, :data:`DROPPED` if nothing of it is published.
    cause : number of the record whose time was up; records with the same cause are published at once.
    boxes : lowest and highest coordinates of every class that is new.
    """

    number: IndexArray
    name: IndexArray
    cause: IndexArray
    boxes: Mapping[int, tuple[FloatArray, FloatArray]]


class RecordEngine(ABC):
    """The waiting records of a stream and what was published of it."""

    @abstractmethod
    def feed(self, arrivals: Arrivals) -> Departures:
        """Take in records."""

    @abstractmethod
    def advance(self, now: float) -> Departures:
        """Let time pass without a record; only a delay in seconds takes note."""

    @abstractmethod
    def finish(self) -> Departures:
        """Publish or drop all that wait: the stream has ended."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Number of records that wait."""

    @property
    def kept_boxes(self) -> int:
        """Number of published boxes that may be used again."""
        return len(self.kept_names())

    @abstractmethod
    def kept_names(self) -> list[int]:
        """Numbers of the classes whose boxes may be used again."""

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """All that decides what is published next, as JSON can hold it."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""


@dataclass(frozen=True, kw_only=True)
class RecordMethod(ABC):
    """Base of all methods for streams of records; parameters are keyword-only dataclass fields."""

    name: ClassVar[str]
    #: whether it keeps what is required beyond k
    keeps_requirements: ClassVar[bool] = True

    k: int = parameter(help="least number of different people in a class", at_least=2)
    delay: float = parameter(2000.0, help="how long a record may wait, in units of the clock", at_least=1)
    clock: Literal["records", "seconds"] = parameter("records", help="what the delay counts: later records, or seconds")
    max_loss: float = parameter(1.0, help="mean loss above which a record is dropped", at_least=0, at_most=1)
    require: str = parameter("", help="what classes must satisfy beyond k, such as l=2:diagnosis")
    boxes: int = parameter(4096, help="how many published boxes are kept for use again", at_least=1)
    buffer: int = parameter(20_000, help="most records that wait if the delay counts seconds", at_least=2)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.clock == "records" and self.delay < self.k:
            raise ConfigError(f"A delay of {self.delay:g} records is too short for classes of k={self.k}.")
        if self.required and not self.keeps_requirements:
            raise ConfigError(f"The stream method {self.name!r} keeps nothing but k; leave out 'require'.")

    @cached_property
    def required(self) -> tuple[SensitiveModel, ...]:
        """The models that are required beyond k, each about a sensitive column."""
        return sensitive_models(self.require, self.k)

    @property
    def capacity(self) -> int:
        """Most records that wait at a time."""
        return int(self.delay) + 1 if self.clock == "records" else self.buffer

    @property
    def patience(self) -> float:
        """How long an engine lets a record wait; in seconds a little less, as a gateway looks at the clock at times."""
        return float(self.delay) if self.clock == "records" else self.delay - min(EARLY, self.delay / 2)

    @abstractmethod
    def start(self, columns: Sequence[CodedColumn], *, seed: int = 0) -> RecordEngine:
        """An engine without records."""
