"""Who runs in a folder: a file with the number of a process, locked for as long as that lives, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from fedanon.errors import ConfigError
from fedanon.federated.deployment.folders import FILE_MODE

#: seconds in which whoever only looks whether someone is present has looked
LOOKED_AT = 0.5


@contextlib.contextmanager
def present(path: Path, what: str, *, seconds: float = LOOKED_AT) -> Iterator[None]:
    """Inside, this process is the one that ``path`` names.

    Raises
    ------
    ConfigError
        If another one is, and does not end within some seconds; ``what`` says what both are.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
    end = time.monotonic() + seconds
    try:
        while not _lock(descriptor):
            if time.monotonic() >= end:
                raise ConfigError(f"{what} is running already, as process {_number(path) or 'unknown'}.")
            time.sleep(0.1)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)  # which gives up the lock


def who_is_present(path: Path) -> int | None:
    """The number of the process that ``path`` names, if it is alive."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return None if _lock(descriptor) else _number(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return None
