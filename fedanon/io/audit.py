"""An audit log: what was done to which data, in lines of which each names the hash of the line before.

A line is a JSON object: its ``number``, the ``time`` (UTC), the ``event`` with ``facts`` about it (hashes, counts and
parameters, no cell), the version, ``previous`` (the ``sha256`` of the line before, zeros in the first) and its own
``sha256``, that of the line without it. A line that is changed, removed or moved breaks the chain there. Cutting off
the end, or writing the whole log anew, leaves a sound chain: only the hash of the last line (:attr:`Chain.head`), kept
elsewhere, shows it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedanon._version import __version__
from fedanon.errors import DataError
from fedanon.io.atomic import locked

#: where the log lies, for commands that are not told and for the processes of a federation
VARIABLE = "FEDANON_AUDIT"
START = "0" * 64
FIELDS = {"number", "time", "event", "facts", "version", "previous", "sha256"}
#: no line is longer, so the last one is found in this many bytes of the end
MAX_LINE = 2**20


# ---- writing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditLog:
    """A log that lines are added to; several processes may do so at once."""

    path: Path

    @classmethod
    def wanted(cls, path: Path | None = None) -> AuditLog | None:
        """The log at ``path``, else that of the environment variable FEDANON_AUDIT; None if neither is given."""
        named = os.environ.get(VARIABLE, "") if path is None else str(path)
        return cls(Path(named)) if named else None

    def check_ready(self) -> None:
        """Raise DataError unless a line could be added now."""
        with self._opened() as descriptor:
            _last(descriptor, self.path)

    def append(self, event: str, facts: Mapping[str, Any]) -> str:
        """Add a line whole or not at all, and return its hash: the head of the log."""
        with self._opened() as descriptor:
            number, previous = _last(descriptor, self.path)
            record = {
                "number": number + 1,
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "event": event,
                "facts": _plain(facts),
                "version": __version__,
                "previous": previous,
            }
            line, head = _sealed(record)
            self._write(descriptor, line)
        return head

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:
            raise DataError(f"The audit log {self.path} cannot be opened: {error.strerror}.") from None
        try:
            with locked(descriptor):
                yield descriptor
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, line: bytes) -> None:
        if len(line) > MAX_LINE:
            raise DataError(f"A line of the audit log may have {MAX_LINE} bytes; this one has {len(line)}.")
        end = os.lseek(descriptor, 0, os.SEEK_END)
        try:
            written = os.write(descriptor, line)
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, end)
            raise DataError(f"The audit log {self.path} cannot be written: {error.strerror}.") from None
        if written < len(line):
            os.ftruncate(descriptor, end)
            raise DataError(f"The audit log {self.path} cannot be written: the disk is full.")


def audit(event: str, **facts: Any) -> None:
    """Add a line to the log of FEDANON_AUDIT, if there is one."""
    log = AuditLog.wanted()
    if log is not None:
        log.append(event, facts)


def _sealed(record: Mapping[str, Any]) -> tuple[bytes, str]:
    """The line of a record, with its own hash in it, and that hash."""
    digest = hashlib.sha256(_canonical(record)).hexdigest()
    return _canonical({**record, "sha256": digest}) + b"\n", digest


def _plain(facts: Mapping[str, Any]) -> Any:
    """Facts as they will be read back: keys are texts, numpy's numbers are numbers, other things are texts."""
    return json.loads(json.dumps(facts, default=lambda value: value.item() if hasattr(value, "item") else str(value)))


def _canonical(record: Mapping[str, Any]) -> bytes:
    """The one way to write a record: sorted, without blanks, ASCII."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def _last(descriptor: int, path: Path) -> tuple[int, str]:
    """Number and hash of the last line; 0 and zeros in an empty log."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    if end == 0:
        return 0, START
    begin = max(0, end - MAX_LINE - 1)
    os.lseek(descriptor, begin, os.SEEK_SET)
    tail = os.read(descriptor, end - begin)
    record = _record(tail[:-1].rpartition(b"\n")[2]) if tail.endswith(b"\n") else None
    if record is None:
        raise DataError(f"The end of the audit log {path} is damaged; `fedanon audit verify` says where.")
    return record["number"], record["sha256"]


# ---- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """What a log proves.

    Parameters
    ----------
    lines : number of sound lines from the start.
    head : hash of the last of them.
    broken : the first line that does not fit, from 1; None if all do.
    reason : what is wrong with it.
    """

    lines: int
    head: str
    broken: int | None = None
    reason: str = ""


def read_chain(path: Path) -> tuple[Chain, list[str]]:
    """Follow the chain from the start; also the hashes of the sound lines."""
    hashes: list[str] = []
    for number, line in enumerate(_lines(path), 1):
        reason = _fault(line, number, hashes[-1] if hashes else START)
        if reason:
            return Chain(len(hashes), hashes[-1] if hashes else START, number, reason), hashes
        hashes.append(json.loads(line)["sha256"])
    return Chain(len(hashes), hashes[-1] if hashes else START), hashes


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while line := file.readline(2 * MAX_LINE):
                yield line
    except OSError:
        raise DataError(f"The audit log {path} is not there or cannot be read.") from None


def _fault(line: bytes, number: int, previous: str) -> str:
    """What is wrong with a line at its place, or nothing."""
    record = _record(line[:-1]) if line.endswith(b"\n") else None
    if record is None:
        return "it was changed, or not written whole"
    if record["previous"] != previous or record["number"] != number:
        return "it does not follow the line before: a line was removed, added or moved"
    return ""


def _record(line: bytes) -> dict[str, Any] | None:
    """The record of a line whose own hash is right and that is written the one way; None otherwise."""
    try:
        record = json.loads(line)
        content = {name: value for name, value in record.items() if name != "sha256"}
        sound = set(record) == FIELDS and isinstance(record["number"], int) and _sealed(content)[0] == line + b"\n"
    except (ValueError, AttributeError, RecursionError):
        return None
    return record if sound else None
