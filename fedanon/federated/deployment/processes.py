"""Processes we start: ended when we end, first gently."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
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


@contextlib.contextmanager
def running(command: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Inside, the process runs or has ended by itself."""
    process = subprocess.Popen(command, env=env, umask=UMASK)
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


# ---- Flower's commands ---------------------------------------------------------------------------

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    # a run would otherwise install packages, which can shadow the installed fedanon
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONUNBUFFERED": "1",
}


def environment(home: Path, *, first: Path | None = None) -> dict[str, str]:
    """The environment of Flower's processes; commands in ``first`` come before those beside this Python."""
    beside = str(Path(sys.executable).parent)
    path = [str(first)] if first else []
    path += [beside, os.environ.get("PATH", os.defpath)]
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
