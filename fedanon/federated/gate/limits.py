"""What an app may answer: names, shapes, types, ranges and precision, fixed beforehand; and what that can carry.

A reply is made anew from what is listed, in the listed order, with the listed types. What is left to an app are the
numbers themselves, and of those as many bits as :meth:`ReplyLimits.capacity` says.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.federated import wire
from fedanon.fields import Settings, build, check_fields, parameter
from fedanon.learning.settings import RunSettings
from fedanon.types import AnyArray

#: floats beyond the first are refused, those below the second are sent as 0
LARGEST, SMALLEST = 1e6, 2.0**-30
MAX_ARRAYS = 10_000
_ARRAY = re.compile(r"(?P<dtype>\w+) (?P<shape>scalar|<=\d+|\d+(x\d+)*)( (?P<low>-?\d+)\.\.(?P<high>-?\d+))?")
_NUMBER = re.compile(r"(?P<low>-?[\d.e+]+?)\.\.(?P<high>-?[\d.e+]+)( (?P<digits>\d+) decimals?)?( x(?P<count>\d+))?")


@dataclass(frozen=True)
class ArrayLimit:
    """One array: `float32 16x4`, `int64 scalar 0..1000`, `uint8 <=50000` (of at most so many numbers)."""

    dtype: str
    shape: tuple[int, ...]
    at_most: bool
    low: int | None
    high: int | None

    @classmethod
    def parse(cls, name: str, text: str) -> ArrayLimit:
        """From its text."""
        found = _ARRAY.fullmatch(text)
        if found is None or found["dtype"] not in wire.NUMBERS:
            raise ConfigError(
                f"The array {name!r} of an app must be like 'float32 16x4', 'int64 scalar 0..9' or 'uint8 <=5000'; "
                f"types are {', '.join(wire.NUMBERS)}."
            )
        shape, bounds = found["shape"], found["low"]
        lengths = () if shape == "scalar" else tuple(int(length) for length in shape.removeprefix("<=").split("x"))
        if not found["dtype"].startswith("float") and found["dtype"] != "uint8" and bounds is None:
            raise ConfigError(f"The whole numbers of the array {name!r} of an app need a range, such as 0..1000.")
        low, high = (int(found["low"]), int(found["high"])) if bounds is not None else (None, None)
        return cls(found["dtype"], lengths, shape.startswith("<="), low, high)

    @property
    def text(self) -> str:
        """As it is parsed."""
        shape = "x".join(map(str, self.shape)) or "scalar"
        bounds = "" if self.low is None else f" {self.low}..{self.high}"
        return f"{self.dtype} {'<=' if self.at_most else ''}{shape}{bounds}"

    @property
    def is_float(self) -> bool:
        """Whether its numbers are rounded to significant bits."""
        return self.dtype.startswith("float")

    @property
    def bytes(self) -> int:
        """At most."""
        return math.prod(self.shape) * wire.NUMBERS[self.dtype].itemsize

    def values(self, bits: int) -> float:
        """How many different numbers one of its places can hold."""
        if not self.is_float:
            low, high = self._range
            return float(high - low + 1)
        largest = max(abs(self.low), abs(self.high or 0)) if self.low is not None else LARGEST
        octaves = math.floor(math.log2(max(largest, 1))) - math.floor(math.log2(SMALLEST)) + 1
        # of either sign, and 0; the largest may be rounded up into the next octave
        return float(2 * (octaves * 2 ** (min(bits, _precision(self.dtype)) - 1) + 1) + 1)

    def capacity(self, bits: int) -> float:
        """The most bits the array can carry."""
        places = math.prod(self.shape)
        return places * math.log2(self.values(bits)) + (math.log2(places + 1) if self.at_most else 0.0)

    def passed(self, values: AnyArray, bits: int) -> AnyArray:
        """The array as it may leave; UpdateRejectedError if it may not."""
        fits = values.ndim == 1 and values.size <= self.shape[0] if self.at_most else values.shape == self.shape
        if not fits or values.dtype != wire.NUMBERS[self.dtype]:
            found = f"{values.dtype} {'x'.join(map(str, values.shape)) or 'scalar'}"
            raise UpdateRejectedError(f"an array is {found}, not {self.text}")
        if not self.is_float:
            least, most = self._range
            if values.size and (values.min() < least or values.max() > most):
                raise UpdateRejectedError("an array has whole numbers beyond what is allowed")
            return values
        low, high = (-LARGEST, LARGEST) if self.low is None or self.high is None else (self.low, self.high)
        if not np.isfinite(values).all() or (values < low).any() or (values > high).any():
            raise UpdateRejectedError("an array has numbers that are not finite, or beyond what is allowed")
        return round_to_bits(values, bits)

    @property
    def _range(self) -> tuple[int, int]:
        return (0, 255) if self.low is None or self.high is None else (self.low, self.high)


def round_to_bits(values: AnyArray, bits: int) -> AnyArray:
    """Numbers with so many significant bits; minute ones and both zeros are 0."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    rounded = np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)
    return np.where(np.abs(rounded) < SMALLEST, 0.0, rounded).astype(values.dtype)


def _precision(dtype: str) -> int:
    return int(np.finfo(wire.NUMBERS[dtype]).nmant) + 1


@dataclass(frozen=True)
class NumberLimit:
    """One metric: `0..100000` (whole), `0..1 3 decimals`, `0..1 3 decimals x10` (a list of ten)."""

    low: float
    high: float
    digits: int
    count: int

    @classmethod
    def parse(cls, name: str, text: str) -> NumberLimit:
        """From its text."""
        found = _NUMBER.fullmatch(text)
        try:
            assert found is not None
            low, high = float(found["low"]), float(found["high"])
            assert -math.inf < low <= high < math.inf
        except (AssertionError, ValueError):
            raise ConfigError(f"The number {name!r} of an app must be like '0..1000' or '0..1 3 decimals'.") from None
        return cls(low, high, int(found["digits"] or 0), int(found["count"] or 0))

    @property
    def text(self) -> str:
        """As it is parsed."""
        digits = f" {self.digits} decimals" if self.digits else ""
        return f"{self.low:g}..{self.high:g}{digits}" + (f" x{self.count}" if self.count else "")

    @property
    def capacity(self) -> float:
        """The most bits it can carry."""
        first, last = (round(end, self.digits) * 10**self.digits for end in (self.low, self.high))
        return max(self.count, 1) * math.log2(round(last - first) + 1)

    def passed(self, value: Any) -> Any:
        """The number as it may leave; UpdateRejectedError if it may not."""
        entries = value if self.count and isinstance(value, list) else [value]
        if len(entries) != max(self.count, 1) or isinstance(value, list) != bool(self.count):
            raise UpdateRejectedError("a number is a list, or a list has another length than is allowed")
        passed = [self._one(entry) for entry in entries]
        return passed if self.count else passed[0]

    def _one(self, value: Any) -> int | float:
        if type(value) not in (int, float) or not self.low <= value <= self.high:
            raise UpdateRejectedError("a number is beyond what is allowed, or none")
        rounded = round(float(value), self.digits)
        return rounded + 0.0 if self.digits else int(rounded)


@dataclass(frozen=True)
class ReplyLimits:
    """What a reply to one type of message holds; names are RECORD/NAME, in the order in which they leave."""

    arrays: Mapping[str, ArrayLimit] = field(default_factory=dict)
    numbers: Mapping[str, NumberLimit] = field(default_factory=dict)

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> ReplyLimits:
        """From tables of texts."""
        arrays, numbers = found.get("arrays", {}), found.get("numbers", {})
        if set(found) - {"arrays", "numbers"} or not (isinstance(arrays, Mapping) and isinstance(numbers, Mapping)):
            raise ConfigError("A reply of an app has the tables 'arrays' and 'numbers', and no others.")
        for name in (*arrays, *numbers):
            if not all(name.partition("/")):
                raise ConfigError(
                    f"The name {name!r} in a reply of an app must be RECORD/NAME, such as 'metrics/loss'."
                )
        if len(arrays) > MAX_ARRAYS or {_record(n) for n in arrays} & {_record(n) for n in numbers}:
            raise ConfigError("A record of an app holds arrays or numbers, and a reply not too many of them.")
        return cls(
            {name: ArrayLimit.parse(name, str(text)) for name, text in arrays.items()},
            {name: NumberLimit.parse(name, str(text)) for name, text in numbers.items()},
        )

    def capacity(self, bits: int) -> float:
        """The most bits the content of a reply can carry."""
        return sum(a.capacity(bits) for a in self.arrays.values()) + sum(n.capacity for n in self.numbers.values())

    @property
    def bytes(self) -> int:
        """The most bytes the numbers of a reply have."""
        return sum(a.bytes for a in self.arrays.values()) + sum(8 * max(n.count, 1) for n in self.numbers.values())

    def passed(self, content: RecordDict, bits: int) -> tuple[RecordDict, list[AnyArray]]:
        """A reply made anew of what may leave, and its arrays as they came.

        Metrics that are not listed are left out. Everything else that is not listed, or lacks, refuses the reply.

        Raises
        ------
        UpdateRejectedError
            Says what is wrong, for the people of the node; never a number.
        """
        holding: dict[str, type[Any]] = {}
        holding |= dict.fromkeys(map(_record, self.arrays), ArrayRecord)
        holding |= dict.fromkeys(map(_record, self.numbers), MetricRecord)
        found = {name: type(record) for name, record in content.items() if not _empty(record)}
        if found != holding:
            raise UpdateRejectedError("it does not hold the records that are allowed")
        if {f"{r}/{name}" for r in holding for name in content[r] if holding[r] is ArrayRecord} != set(self.arrays):
            raise UpdateRejectedError("its arrays do not have the names that are allowed")
        made: Any = RecordDict({name: kind() for name, kind in holding.items()})
        seen = []
        for name, limit in self.arrays.items():
            record, _, key = name.partition("/")
            seen.append(_decoded(content[record][key]))
            made[record][key] = wire.to_array(limit.passed(seen[-1], bits))
        for name, allowed in self.numbers.items():
            record, _, key = name.partition("/")
            if key not in content[record]:
                raise UpdateRejectedError("a number that it must have is missing")
            made[record][key] = allowed.passed(content[record][key])
        return made, seen


def _record(name: str) -> str:
    return name.partition("/")[0]


def _empty(record: Any) -> bool:
    return isinstance(record, ConfigRecord) and not record


def _decoded(array: Any) -> AnyArray:
    try:
        return wire.from_array(array)
    except Exception:
        raise UpdateRejectedError("an array cannot be read") from None


@dataclass(frozen=True, kw_only=True)
class AppLimits:
    """What an app is given, how long it may take, and what it may answer."""

    method: str = parameter("mondrian", help="how the release it is given is made")
    method_settings: Settings = parameter({"k": 5}, help="parameters of that method")
    replies_per_run: int = parameter(100, help="messages of a run that it answers", at_least=1)
    mb_per_run: float = parameter(100.0, help="megabytes (10^6 bytes) of all its answers in a run", at_least=0)
    bits: int = parameter(11, help="significant bits of every float that leaves", at_least=1, at_most=53)
    seconds: float = parameter(300.0, help="after which it is ended", at_least=1)
    slot_seconds: float = parameter(
        5.0, help="answers leave only at multiples of this after the message came; 0 at once", at_least=0
    )
    memory_mb: int = parameter(
        4096, help="memory of each of its processes; its two folders in memory may hold as much each", at_least=64
    )
    state_mb: int = parameter(64, help="megabytes it may remember from message to message, on the node", at_least=0)
    replies: Settings = parameter(help="by type of message, such as train: tables 'arrays' and 'numbers'")

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.replies:
            raise ConfigError("An app needs at least one type of message that it may answer, such as [replies.train].")
        _ = self.by_type, self.settings

    @classmethod
    def from_toml(cls, text: str) -> AppLimits:
        """From a file that the author of an app wrote, or `fedanon node allow`."""
        try:
            return build(cls, tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            raise ConfigError("The limits of an app cannot be read as TOML.") from None

    @cached_property
    def by_type(self) -> dict[str, ReplyLimits]:
        """What the replies to each type of message may hold."""
        return {str(kind): ReplyLimits.parse(found) for kind, found in self.replies.items()}

    @cached_property
    def settings(self) -> RunSettings:
        """Of the release; the rounds of an app are its server's business."""
        return RunSettings(method=self.method, method_settings=self.method_settings)

    @property
    def slots(self) -> int:
        """Moments at which an answer may leave, counted from the message; 0 where it may at any."""
        return math.ceil(self.seconds / self.slot_seconds) if self.slot_seconds else 0

    def capacity(self, kind: str) -> float:
        """The most bits of one answer: its content, the slot in which it leaves, and whether it is a refusal."""
        content = self.by_type[kind].capacity(self.bits)
        return content + math.log2(1 + 2.0**-content) + math.log2(max(self.slots, 1))

    def describe(self) -> list[str]:
        """What is allowed, in sentences."""
        parameters = ", ".join(f"{name}={value}" for name, value in sorted(self.method_settings.items()))
        said = [
            f"It is given a verified release by {self.method} ({parameters}), and no other file of this node.",
            f"It may answer {self.replies_per_run} messages of a run, {self.mb_per_run:g} MB in all, each within "
            f"{self.seconds:g} s, with {self.memory_mb} MB of memory.",
            f"Floats leave with {self.bits} significant bits, answers "
            + (f"every {self.slot_seconds:g} s." if self.slot_seconds else "AT ANY MOMENT: time can carry more."),
        ]
        for kind, reply in self.by_type.items():
            arrays, numbers = len(reply.arrays), [f"{n} ({limit.text})" for n, limit in reply.numbers.items()]
            said.append(
                f"To '{kind}' it answers {arrays} arrays and {len(numbers)} numbers"
                + (f": {', '.join(numbers)}" if numbers else "")
                + f". That is up to {reply.bytes:,} bytes, and can carry {math.ceil(self.capacity(kind)):,} bits."
            )
        return said


def limits_of(replies: Mapping[str, RecordDict]) -> dict[str, dict[str, dict[str, str]]]:
    """The `replies` of an app's limits after an example of each; for authors, who then narrow the ranges."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for kind, content in replies.items():
        arrays, numbers = {}, {}
        for record, entries in content.array_records.items():
            for name, array in entries.items():
                bounds = "" if array.dtype.startswith("float") or array.dtype == "uint8" else " 0..1000000"
                arrays[f"{record}/{name}"] = f"{array.dtype} {'x'.join(map(str, array.shape)) or 'scalar'}{bounds}"
        for record, metrics in content.metric_records.items():
            for name, value in metrics.items():
                numbers[f"{record}/{name}"] = "0..1000000" if isinstance(value, int) else "0..1000 3 decimals"
        found[kind] = {"arrays": arrays, "numbers": numbers}
    return found
