"""Flower's commands: found beside this Python, quiet, offline, with a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedanon.errors import ConfigError

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
