"""Journal: every reading a gateway has taken in, on disk before it is acknowledged; and the snapshots that shorten it.

An engine is deterministic, so a snapshot and the readings after it are all there is to know: after a crash they give
the same publications again, under the same numbers. A journal is a chain of segments; a line is a JSON array, and one
that a crash has torn, which can only be the last, was not acknowledged and is cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedanon.errors import DataError
from fedanon.io.atomic import atomic_write, sync_folder

SNAPSHOT = "snapshot.json"
#: `json.dumps` would make one per line
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Entry(NamedTuple):
    """A reading, or only the passing of time if it has no message.

    Parameters
    ----------
    moment : when it was taken in, in seconds.
    message : what it holds.
    key : what tells it from others, for sources that may repeat a message.
    place : where in its source it stands, for sources that can be read again.
    """

    moment: float
    message: dict[str, Any] | None = None
    key: str = ""
    place: int = -1


class Journal:
    """The journal in a folder.

    Parameters
    ----------
    folder : made if it does not exist; nobody else may read it, as it holds readings.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._segment, self._entries = 0, 0
        self._file: Any = None

    def recover(self) -> tuple[dict[str, Any] | None, Iterator[Entry]]:
        """The last snapshot, if there is one, and the entries after it; read them all before anything is appended."""
        path = self._folder / SNAPSHOT
        state: dict[str, Any] | None = None
        skip = 0
        if path.exists():
            try:
                document = json.loads(path.read_text(encoding="utf-8"))
                state, self._segment, skip = document["state"], document["segment"], document["entries"]
            except (OSError, ValueError, KeyError):
                raise DataError(f"The snapshot {SNAPSHOT} of the gateway cannot be read.") from None
        return state, self._replay(skip)

    def _replay(self, skip: int) -> Iterator[Entry]:
        first = self._segment
        for old in self._segments():
            if old < first:
                self._path(old).unlink()
        for segment in self._segments():
            self._segment, self._entries = segment, 0
            for line in self._lines(segment):
                self._entries += 1
                if segment > first or self._entries > skip:
                    yield Entry(*line)

    def _segments(self) -> list[int]:
        return sorted(int(path.stem.removeprefix("journal-")) for path in self._folder.glob("journal-*.log"))

    def _path(self, segment: int) -> Path:
        return self._folder / f"journal-{segment:08d}.log"

    def _lines(self, segment: int) -> Iterator[list[Any]]:
        """The whole lines of a segment; what follows them was never acknowledged, and is cut off."""
        path, end = self._path(segment), 0
        with path.open("rb") as file:
            for line in file:
                try:
                    entry = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    entry = None
                if entry is None:
                    break
                end += len(line)
                yield entry
        if end < path.stat().st_size:
            os.truncate(path, end)

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries; when this returns they are on disk."""
        if self._file is None:
            descriptor = os.open(self._path(self._segment), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._file = os.fdopen(descriptor, "ab", buffering=0)
            sync_folder(self._folder)
        data = "".join([_ENCODER.encode(entry) + "\n" for entry in entries]).encode()
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(f"The journal cannot be written: {error.strerror}.") from None
        self._entries += len(entries)

    def snapshot(self, state: dict[str, Any]) -> None:
        """Keep the state after all entries so far, and begin a new segment."""
        document = {"state": state, "segment": self._segment, "entries": self._entries}
        atomic_write(self._folder / SNAPSHOT, json.dumps(document, separators=(",", ":")), mode=0o600)
        for old in self._segments():
            if old < self._segment:
                self._path(old).unlink()
        self.close()
        self._segment, self._entries = self._segment + 1, 0

    @property
    def entries(self) -> int:
        """Number of entries since the last snapshot, or since the journal was opened."""
        return self._entries

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
