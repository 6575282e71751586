"""Where readings come from: a file, standard input, HTTP; MQTT has a module of its own.

A source hands out what has come, in batches. One that can be read again (a file) numbers its messages, and goes on
after the last that was taken in; those that are acknowledged may repeat a message that was not.
"""

from __future__ import annotations

import csv
import io
import json
import queue
import sys
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol

from fedanon.errors import DataError
from fedanon.streams.gateway import Incoming

#: bytes of a message, and messages of a request, that are accepted
MOST_BYTES, MOST_MESSAGES = 1_000_000, 10_000


class ReadingSource(Protocol):
    """Hands out messages."""

    def read(self, most: int, seconds: float) -> list[Incoming] | None:
        """What has come, at most so many; waits so long for the first. None if the source has ended."""

    def close(self) -> None:
        """End it."""


class FileSource:
    """A file of JSON lines or, if its name ends in .csv, of comma-separated values with a header line.

    Parameters
    ----------
    path : the file.
    after : number of the last line that was taken in; those before it are skipped.
    """

    def __init__(self, path: Path, after: int = -1) -> None:
        separated = path.suffix.lower() == ".csv"
        options: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""} if separated else {"mode": "rb"}
        try:
            self._file: IO[Any] = path.open(**options)
        except OSError:
            raise DataError(f"The file {path} is not there or cannot be read.") from None
        rows: Iterable[Any] = csv.DictReader(self._file) if separated else filter(bytes.strip, self._file)
        self._rows = islice(enumerate(rows), after + 1, None)

    def read(self, most: int, seconds: float) -> list[Incoming] | None:
        """The next lines; see :class:`ReadingSource`."""
        batch = [Incoming(data, place) for place, data in islice(self._rows, most)]
        return batch or None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class QueueSource:
    """Messages that other threads put into a bounded queue; who puts into a full one waits."""

    def __init__(self, most: int) -> None:
        self._queue: queue.Queue[Incoming | None] = queue.Queue(most)
        self._ended = False

    def put(self, message: Incoming | None, timeout: float | None = None) -> bool:
        """Hand a message in, None for the end; False if there was no room in time."""
        try:
            self._queue.put(message, timeout=timeout)
        except queue.Full:
            return False
        return True

    def read(self, most: int, seconds: float) -> list[Incoming] | None:
        """What has come; see :class:`ReadingSource`."""
        if self._ended:
            return None
        batch: list[Incoming] = []
        try:
            while len(batch) < most:
                message = self._queue.get(timeout=seconds) if not batch else self._queue.get_nowait()
                if message is None:
                    self._ended = True
                    break
                batch.append(message)
        except queue.Empty:
            pass
        return None if self._ended and not batch else batch

    def close(self) -> None:
        """Nothing is held."""


class StdinSource(QueueSource):
    """JSON lines on standard input; they cannot be read again, so a restart takes what comes as new."""

    def __init__(self, most: int, file: BinaryIO | None = None) -> None:
        super().__init__(most)
        self._input = file or sys.stdin.buffer
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        for line in self._input:
            if line.strip():
                self.put(Incoming(line))
        self.put(None)


class HttpSource(QueueSource):
    """POST a JSON object, or a list of them; the answer 202 means that they are on disk.

    503 says that the gateway has too much to do: send the same again later.
    """

    #: how long a request waits for room, and for the journal
    patience = 5.0

    def __init__(self, most: int, listen: str, port: int) -> None:
        super().__init__(most)
        source = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                code = source.accept(self.rfile, self.headers.get("Content-Length", ""))
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Requests are counted by the gateway."""

        try:
            self._server = ThreadingHTTPServer((listen, port), Handler)
        except OSError as error:
            raise DataError(f"The HTTP source cannot listen on port {port}: {error.strerror}.") from None
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def accept(self, body: io.BufferedIOBase, length: str) -> int:
        """Take in the body of a request and wait until it is on disk; the status of the answer."""
        if not length.isdigit() or int(length) > MOST_BYTES:
            return 413 if length.isdigit() else 411
        data = body.read(int(length))
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = data
        messages = found if isinstance(found, list) else [found]
        if len(messages) > MOST_MESSAGES:
            return 413
        done = threading.Semaphore(0)
        until = time.monotonic() + self.patience
        for message in messages:
            held = message if isinstance(message, (bytes, dict)) else json.dumps(message).encode()
            if not self.put(
                Incoming(held, may_repeat=True, ack=done.release), timeout=max(until - time.monotonic(), 0.001)
            ):
                return 503
        stored = all(done.acquire(timeout=max(until - time.monotonic(), 0.001)) for _ in messages)
        return 202 if stored else 503

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
