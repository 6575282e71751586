"""A lock on an open file, held by one process at a time and given up when it ends, however it ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    @contextmanager
    def locked(descriptor: int) -> Iterator[None]:
        """Wait for the lock and hold it."""
        import os

        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    @contextmanager
    def locked(descriptor: int) -> Iterator[None]:
        """Wait for the lock and hold it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
