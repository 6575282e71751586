"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from fedanon.errors import DataError


def atomic_write(path: str | Path, data: bytes | str, *, mode: int = 0o666) -> None:
    """Write ``data`` to ``path`` as :func:`atomic_file` does."""
    with atomic_file(path, mode=mode) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def atomic_file(path: str | Path, *, mode: int = 0o666) -> Iterator[BufferedRandom]:
    """A file to write and read; a reader of ``path`` sees the old one or the whole new one.

    The file takes its name when the block ends; if the block raises, nothing is left of it. ``mode`` are the
    permissions of the new file, before the umask.

    Raises
    ------
    DataError
        If the file cannot be written: no such folder, no permission, disk full.
    """
    path = Path(path)
    # in the same folder, since only a move within one file system is atomic
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "x+b", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise DataError(f"The file {path} cannot be written: {error.strerror or 'unknown reason'}.") from None
    finally:
        _discard(draft)


def sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system lets a folder be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(draft: Path) -> None:
    try:
        draft.unlink(missing_ok=True)
    except OSError:
        return  # the folder is gone or closed to us; there is nothing left to clear


# ---- A lock on an open file, held by one process at a time and given up when it ends, however it ends ---


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


@contextmanager
def held(path: Path) -> Iterator[None]:
    """One process at a time changes the file ``path``; it is replaced when written, so the lock lies beside it."""
    try:
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DataError(f"The file {path.name} cannot be locked: {error.strerror}.") from None
    try:
        with locked(descriptor):
            yield
    finally:
        os.close(descriptor)
