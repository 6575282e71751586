"""Desk: one helper process that has pandas and the methods at hand, for what is quick: reading, proposals, previews.

The server asks it by name over a pipe, a line of JSON each way. What takes too long is ended with the process, and a
new one is begun, so that no question can hold up the next.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

from fedanon.errors import ConfigError, DataError, FedanonError

#: seconds after which a question is given up, unless it says otherwise
PATIENCE = 180.0


class Desk:
    """Asks the helper process; one question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def ask(self, question: str, *, patience: float = PATIENCE, **given: Any) -> Any:
        """Return the answer to a question of :mod:`fedanon.app.desk_tasks`, or raise the error it ended with."""
        with self._lock:
            process = self._ready()
            assert process.stdin is not None
            assert process.stdout is not None
            late = threading.Event()

            def give_up() -> None:
                late.set()
                process.kill()

            watch = threading.Timer(patience, give_up)
            watch.daemon = True
            watch.start()
            try:
                process.stdin.write(json.dumps([question, given]) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = ""
            finally:
                watch.cancel()
            if not line:
                self._end()
        if late.is_set():
            raise ConfigError(f"This took longer than {patience:g} seconds and was given up.")
        if not line:
            raise DataError("The helper process ended; there may be too little memory for this table.")
        kind, answer = json.loads(line)
        if kind == "error":
            raise DeskError(answer)
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing, and begin no other."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
        with self._lock:
            self._end()

    @property
    def pid(self) -> int | None:
        """Of the process, if it runs."""
        return None if self._process is None else self._process.pid

    def _ready(self) -> subprocess.Popen[str]:
        if self._closed:
            raise ConfigError("The app has ended.")
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fedanon.app.desk_tasks"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for the server, which ends it
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # what was still to be written goes nowhere


class DeskError(FedanonError):
    """An error of the helper process, in the words it had there."""
