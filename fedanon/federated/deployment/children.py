"""Processes we start: ended when we end, first gently."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

STOP_SECONDS = 10
FATAL = (signal.SIGTERM, signal.SIGINT)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, by force if it does not go."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    if process.poll() is None:
        process.kill()
        process.wait()


@contextlib.contextmanager
def running(command: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Inside, the process runs or has ended by itself."""
    process = subprocess.Popen(command, env=env)
    try:
        yield process
    finally:
        end(process)


@contextlib.contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Inside, a signal to end unwinds the stack, so that every child is ended on the way."""
    handlers = {number: signal.signal(number, _leave) for number in FATAL}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: Any) -> None:
    raise SystemExit(128 + number)
