"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fedanon.errors import DataError


def atomic_write(path: str | Path, data: bytes | str, *, mode: int = 0o666) -> None:
    """Write ``data`` to ``path``; a reader sees the old file or the whole new one, and a failure leaves no trace.

    ``mode`` are the permissions of the new file, before the umask.

    Raises
    ------
    DataError
        If the file cannot be written: no such folder, no permission, disk full.
    """
    path = Path(path)
    # in the same folder, since only a move within one file system is atomic
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        _write_through(draft, data.encode() if isinstance(data, str) else data, mode)
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise DataError(f"The file {path} cannot be written: {error.strerror or 'unknown reason'}.") from None
    finally:
        _discard(draft)


def _write_through(path: Path, data: bytes, mode: int) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
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
