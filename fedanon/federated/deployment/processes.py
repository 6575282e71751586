"""Processes we start: ended when we end, first gently; and also if we are killed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError

STOP_SECONDS = 10
FATAL = (signal.SIGTERM, signal.SIGINT)
#: what Flower's processes write (databases, checkpoints) is closed to others from its first byte on
UMASK = 0o077


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, by force if it does not go."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    if process.poll() is None:
        process.kill()
        process.wait()


def start(command: Sequence[str], env: Mapping[str, str], output: Any = None) -> subprocess.Popen[bytes]:
    """Start a process that does not outlive this one."""
    ours = os.getpid()
    return subprocess.Popen(
        command, env=env, stdout=output, stderr=output, umask=UMASK, preexec_fn=lambda: die_with_parent(ours)
    )


def die_with_parent(parent: int) -> None:
    """Have the system kill this process when the one that started it ends, however that ends.

    Other systems than Linux do not offer that; there, Flower's processes look after their parents themselves.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@contextlib.contextmanager
def running(command: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Inside, the process runs or has ended by itself."""
    process = start(command, env)
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


class Pause:
    """Waits between looks for something: short ones at first, then a quarter of what has been waited already.

    Parameters
    ----------
    longest : seconds.
    before : how long the last one took to come; the first look is not much earlier, unless that was long.
    """

    SHORTEST = 0.1

    def __init__(self, longest: float, before: float = 0.0) -> None:
        self._longest = longest
        self._begin = time.monotonic()
        # less than it took: so the expectation shrinks when things come earlier
        self._first = 0.6 * before if before < longest else 0.0

    @property
    def waited(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begin

    def wait(self) -> None:
        """Wait once."""
        time.sleep(max(self._first, min(max(self.waited / 4, self.SHORTEST), self._longest)))
        self._first = 0.0


# ---- Flower's commands ---------------------------------------------------------------------------

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    # a run would otherwise install packages, which can shadow the installed fedanon
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONUNBUFFERED": "1",
}


def environment(home: Path) -> dict[str, str]:
    """The environment of Flower's processes; its commands beside this Python come first."""
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return {**os.environ, **QUIET, "FLWR_HOME": str(home), "PATH": os.pathsep.join(path)}


def command(name: str) -> str:
    """Where a command of Flower's lies."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise ConfigError(f"The command {name} is missing: pip install 'fedanon[edge]'.")
    return str(path)


def call(arguments: Sequence[str], env: Mapping[str, str], *, seconds: float = 60) -> tuple[bool, str]:
    """Run `flwr`; whether it succeeded, and what it said."""
    return call_python([command("flwr"), *arguments], env, seconds=seconds)


def call_python(arguments: Sequence[str], env: Mapping[str, str], *, seconds: float) -> tuple[bool, str]:
    """Run this Python; whether it succeeded, and what it said."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments], env=dict(env), capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False, "it did not answer"
    return done.returncode == 0, done.stdout + done.stderr
