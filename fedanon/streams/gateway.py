"""Gateway: messages in, windows out; a reading is on disk before it is acknowledged, and published once.

What a gateway does follows from its journal alone, so that after a crash it goes on as if nothing had happened:
publications have the numbers they had, and windows that were written are found and left.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from fedanon._version import __version__
from fedanon.data.schema import Schema
from fedanon.errors import ConfigError, FedanonError
from fedanon.io.atomic import atomic_write
from fedanon.streams.claims import PeopleClaim, RecordsClaim
from fedanon.streams.config import GatewayConfig
from fedanon.streams.dead_letters import DeadLetters
from fedanon.streams.encoding import Encoder
from fedanon.streams.journal import Entry, Journal
from fedanon.streams.kernels import compile_apart
from fedanon.streams.ledger import Ledger, Shown
from fedanon.streams.publication import Box, Engine, Publication, Reading
from fedanon.streams.reader import Checked, MessageReader
from fedanon.streams.records import RecordStream
from fedanon.streams.space import box_texts
from fedanon.streams.sticky import StickyEngine
from fedanon.streams.windows import Row, WindowFolder

log = logging.getLogger("fedanon.streams")

STATUS = "status.json"
#: keys of messages that are remembered, to know a repeated one
REMEMBERED = 20_000
#: entries of the journal after which a snapshot is taken, whether a window has ended or not
MOST_ENTRIES = 100_000


@dataclass(frozen=True)
class Incoming:
    """A message from a source.

    Parameters
    ----------
    data : a JSON object, as text or parsed.
    place : where in the source it stands, for sources that can be read again; else -1.
    may_repeat : whether the source sends a message again that was not acknowledged; equal messages are then one.
    ack : called when the message is on disk, or refused for good.
    """

    data: bytes | Mapping[str, Any]
    place: int = -1
    may_repeat: bool = False
    ack: Callable[[], None] = lambda: None


class Outlet(Protocol):
    """Where publications go besides the windows; it may see one again, under the same number, after a crash."""

    def publish(self, number: int, rows: list[Row]) -> None:
        """Send what is published at once; numbers count up."""

    def flush(self) -> bool:
        """Wait until all was received; False if that was given up."""


@dataclass
class GatewayCounts:
    """What a gateway has done, since its state began."""

    taken: int = 0
    refused: int = 0
    repeated: int = 0
    published: int = 0
    dropped: int = 0
    publications: int = 0
    windows: int = 0

    def to_dict(self) -> dict[str, int]:
        """By name."""
        return dict(vars(self))


@dataclass
class _Window:
    """The window that is being filled."""

    end: float = float("-inf")
    rows: list[Row] = field(default_factory=list)


class _Taken(NamedTuple):
    """An entry of the journal, and what was made of its message, if it has one."""

    entry: Entry
    checked: Checked | None = None


class Gateway:
    """A gateway and its state on disk.

    Parameters
    ----------
    config : what stands in gateway.toml.
    clock : whether time is that of the gateway or that of the messages, as in a replay.
    outlet : where publications go besides the windows, if anywhere.
    dead : sends messages that cannot be taken in elsewhere too, if given.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        clock: Literal["gateway", "message"] = "gateway",
        outlet: Outlet | None = None,
        dead: Callable[[str], None] | None = None,
    ) -> None:
        self.config, self._clock, self._outlet = config, clock, outlet
        self._state = config.path(config.state)
        self._schema = Schema.read(config.path(config.schema))
        self._encoder = Encoder(self._schema)
        self._check()
        self._journal = Journal(self._state)
        self._dead = DeadLetters(self._state, dead)
        self._reader = MessageReader(config, self._encoder)
        self._key = _secret(self._state / "gateway.key")
        self.engine, self._ledger = self._make_engine(), self._make_ledger()
        self._windows = WindowFolder(
            config.path(config.sink.windows), config.sink.format, self._columns(), self._facts(), self._key
        )
        self.counts, self._window = GatewayCounts(), _Window()
        self._pending: dict[int, tuple[Row, str]] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._texts: dict[int, dict[str, str]] = {}
        self.place, self.moment, self._closed = -1, float("-inf"), False
        self._recover()

    def _check(self) -> None:
        config, schema = self.config, self._schema
        if config.claim == "people" and schema.person_id is None:
            raise ConfigError("The claim 'people' needs a person_id in the schema.")
        for name in (config.time, config.id):
            if name and name not in schema.names:
                raise ConfigError(f"The column {name!r} of gateway.toml is not declared in the schema.")
        if self._clock == "message" and not config.time and self._needs_time:
            raise ConfigError("A replay with a delay in seconds needs the 'time' column in gateway.toml.")
        if config.time and config.time in [a.name for a in schema.quasi_identifiers]:
            raise ConfigError(f"The time column {config.time!r} cannot be a quasi-identifier.")

    @cached_property
    def _needs_time(self) -> bool:
        method = self.config.record_method
        return method is None or method.clock == "seconds"

    def _make_engine(self) -> Engine:
        records, sticky = self.config.record_method, self.config.sticky_classes
        if records is not None:
            compile_apart()
            return RecordStream(records, self._encoder.columns, seed=self.config.seed)
        assert sticky is not None
        return StickyEngine(sticky, self._encoder.columns, key=self._key)

    def _make_ledger(self) -> Ledger:
        records, sticky = self.config.record_method, self.config.sticky_classes
        method = records or sticky
        assert method is not None
        quasi = [a.name for a in self._schema.quasi_identifiers]
        required = {model.column: self._schema[model.column] for model in method.required}
        most = 100_000 if records is None else 4 * records.boxes + 1000
        return Ledger(self.config.claim, method.k, quasi, most, models=method.required, attributes=required)

    def _columns(self) -> list[str]:
        series = ["pseudonym", "epoch", "class"] if self.config.claim == "people" else []
        return [*series, *self._schema.published]

    def _facts(self) -> dict[str, Any]:
        records, sticky = self.config.record_method, self.config.sticky_classes
        method = records or sticky
        assert method is not None
        promised = (RecordsClaim if records else PeopleClaim)(method.k, method.required)
        return {
            "claim": {**promised.to_dict(), "counted": self._schema.unit},
            "promise": promised.describe(self._schema.unit),
            "provenance": {
                **self.config.to_claim(),
                "time": self.config.time,
                "version": __version__,
                "schema_sha256": self._schema.sha256,
            },
        }

    # ---- taking in --------------------------------------------------------------------------------

    def take(self, incoming: Sequence[Incoming], now: float) -> None:
        """Take in messages: journal, acknowledge, publish what is due."""
        taken: list[_Taken] = []
        for message in incoming:
            one = self._entry(message, now)
            if one is not None:
                taken.append(one)
                self.moment = one.entry.moment
        if taken:
            self._journal.append([one.entry for one in taken])
        for message in incoming:
            message.ack()
        self._process(taken)
        self._settle()

    def tick(self, now: float) -> None:
        """Let time pass without a message; nothing is written where nothing can follow from it."""
        due = self._window.rows or (self.engine.waiting and self._needs_time)
        if now > self.moment and due:
            self.moment = now
            entry = Entry(now)
            self._journal.append([entry])
            self._process([_Taken(entry)])
            self._settle()

    def finish(self) -> None:
        """End the stream: publish or drop all that wait, and close the last window."""
        self._show(self.engine.finish())
        self._close_window()
        self._settle()

    @property
    def is_full(self) -> bool:
        """Whether so many readings wait that no more should be taken in."""
        sticky = self.config.sticky_classes
        return sticky is not None and self.engine.waiting >= sticky.buffer

    def _entry(self, incoming: Incoming, now: float) -> _Taken | None:
        """The entry of a message; None if it is refused, or was taken in before."""
        data = incoming.data
        try:
            checked = self._reader.read(data)
            stated = self._clock == "message" and self.config.time
            moment = max(self.moment, self._reader.time(checked.message) if stated else now)
        except FedanonError as reason:
            self._bury(data, str(reason))
            return None
        key = self._key_of(checked.message) if incoming.may_repeat else ""
        if key in self._seen or (0 <= incoming.place <= self.place):
            self.counts.repeated += 1
            return None
        self._remember(key, incoming.place)
        return _Taken(Entry(moment, checked.message, key, incoming.place), checked)

    def _key_of(self, message: Mapping[str, Any]) -> str:
        told = message[self.config.id] if self.config.id else sorted(message.items())
        return blake2b(json.dumps(told, default=str).encode(), digest_size=12).hexdigest()

    def _remember(self, key: str, place: int) -> None:
        self.place = max(self.place, place)
        if key:
            self._seen[key] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)

    def _bury(self, data: bytes | Mapping[str, Any], reason: str) -> None:
        self.counts.refused += 1
        self._dead.bury(data, reason, self.counts.refused)

    # ---- publishing -------------------------------------------------------------------------------

    def _process(self, taken: Sequence[_Taken]) -> None:
        """What follows from entries of the journal, now or after a crash."""
        waiting: list[Reading] = []
        for (moment, *_), checked in taken:
            if moment >= self._window.end:
                self._show(self.engine.push(waiting))
                waiting = []
                self._show(self.engine.advance(moment))
                self._close_window()
                self._window.end = moment + self.config.sink.seconds
            if checked is not None:
                waiting.append(self._reading(moment, checked))
            else:
                self._show(self.engine.push(waiting))
                waiting = []
                self._show(self.engine.advance(moment))
        self._show(self.engine.push(waiting))

    def _reading(self, moment: float, checked: Checked) -> Reading:
        message, person, point, row = checked
        number = self.counts.taken
        self.counts.taken += 1
        if self.config.time in row:
            time, step = self._reader.time(message), self.config.step
            row[self.config.time] = time // step * step if step else time
        self._pending[number] = row, person
        return Reading(number, person, point, moment, row)

    def _show(self, publications: Sequence[Publication]) -> None:
        for publication in publications:
            order = self._shuffled(publication.numbers)
            held = [self._pending.pop(publication.numbers[i]) for i in order]
            if publication.box is None:
                self.counts.dropped += len(held)
                continue
            cells, names = self._cells(publication.box), publication.pseudonyms
            if names:
                series = {"epoch": publication.epoch, "class": publication.box.label}
                shown = zip(held, order, strict=True)
                rows = [{**cells, **row, "pseudonym": names[i], **series} for (row, _), i in shown]
            else:
                rows = [{**cells, **row} for row, _ in held]
            self._ledger.require([Shown(row, person) for row, (_, person) in zip(rows, held, strict=True)])
            if self._outlet is not None:
                self._outlet.publish(self.counts.publications, rows)
            self.counts.publications += 1
            self.counts.published += len(rows)
            self._window.rows += rows
            if len(self._window.rows) >= self.config.sink.rows:
                self._close_window()

    def _shuffled(self, numbers: Sequence[int]) -> Sequence[int]:
        """An order that says nothing: an engine's may tell whose time was up, or how people are called."""
        if len(numbers) == 1:
            return (0,)
        digests = [blake2b(str(number).encode(), key=self._key, digest_size=8).digest() for number in numbers]
        return sorted(range(len(numbers)), key=digests.__getitem__)

    def _cells(self, box: Box) -> dict[str, str]:
        if box.label not in self._texts:
            if len(self._texts) > 20_000:
                self._texts.clear()
            self._texts[box.label] = box_texts(self._encoder.columns, np.array(box.low), np.array(box.high))
        return self._texts[box.label]

    def _close_window(self) -> None:
        if self._window.rows:
            counts = {"published": self.counts.published, "dropped": self.counts.dropped}
            if self._windows.write(self.counts.windows, self._window.rows, counts):
                log.info("Window %d: %d rows.", self.counts.windows, len(self._window.rows))
            self.counts.windows += 1
            self._window.rows = []
            self._closed = True

    # ---- state ------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """After all that is in the journal was done, keep the state if a window has been written since."""
        if self._closed or self._journal.entries > MOST_ENTRIES:
            # what the outlet has not sent yet would not be published again after a snapshot
            if self._outlet is not None and not self._outlet.flush():
                return
            self._closed = False
            self._journal.snapshot(self._snapshot())
            self.write_status()

    def _snapshot(self) -> dict[str, Any]:
        end = self._window.end
        return {
            "engine": self.engine.to_state(),
            "ledger": self._ledger.to_state(),
            "pending": [[number, row, person] for number, (row, person) in self._pending.items()],
            "window": [None if end == float("-inf") else end, self._window.rows],
            "counts": self.counts.to_dict(),
            "seen": list(self._seen),
            "source": [self.place, None if self.moment == float("-inf") else self.moment],
            "schema_sha256": self._schema.sha256,
            "config": json.loads(json.dumps(self.config.to_claim())),
        }

    def _recover(self) -> None:
        state, entries = self._journal.recover()
        if state is not None:
            same = json.loads(json.dumps(self.config.to_claim())) == state["config"]
            if not same or state["schema_sha256"] != self._schema.sha256:
                raise ConfigError(
                    "The schema, claim or method of the gateway is not that of its state folder. Name a new folder for "
                    "'state' and for 'windows', or restore the old settings."
                )
            self.engine.restore(state["engine"])
            self._ledger.restore(state["ledger"])
            self._pending = {number: (row, person) for number, row, person in state["pending"]}
            end, rows = state["window"]
            self._window = _Window(float("-inf") if end is None else end, rows)
            self.counts = GatewayCounts(**state["counts"])
            self._seen = OrderedDict.fromkeys(state["seen"])
            place, moment = state["source"]
            self.place, self.moment = place, float("-inf") if moment is None else moment
        replayed = 0
        for entry in entries:
            self._remember(entry.key, entry.place)
            self.moment = max(self.moment, entry.moment)
            checked = None if entry.message is None else self._reader.check(entry.message)
            self._process([_Taken(entry, checked)])
            replayed += 1
        self._settle()
        if replayed:
            log.info("Went on from the journal: %d entries since the last snapshot.", replayed)

    def write_status(self) -> None:
        """Write what `fedanon stream status` shows."""
        moment = None if self.moment == float("-inf") else self.moment
        facts = {**self.counts.to_dict(), "waiting": self.engine.waiting, "moment": moment}
        atomic_write(self._state / STATUS, json.dumps(facts) + "\n", mode=0o600)

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()


def _secret(path: Path) -> bytes:
    """The key of the pseudonyms; made once."""
    if not path.exists():
        atomic_write(path, secrets.token_bytes(32), mode=0o600)
    return path.read_bytes()
