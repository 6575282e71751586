"""What passes between the gate and the process of an app: pieces of bytes, each after its length."""

from __future__ import annotations

import os
import select
import struct
import time

_LENGTH = struct.Struct(">Q")
_CHUNK = 1 << 20


class FrameError(Exception):
    """A piece did not come, or is longer than allowed; nothing of it is kept."""


def write_frame(descriptor: int, data: bytes) -> None:
    """Write one piece."""
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view[:_CHUNK]) :]


def read_frame(descriptor: int, most: int, until: float | None = None) -> bytes:
    """The next piece.

    Parameters
    ----------
    descriptor : of a pipe.
    most : bytes it may have.
    until : when to give up, by the monotonic clock; never where none is given.
    """
    (length,) = _LENGTH.unpack(_read(descriptor, _LENGTH.size, until))
    if length > most:
        raise FrameError(f"it has {length} bytes; {most} are allowed")
    return _read(descriptor, length, until)


def _read(descriptor: int, length: int, until: float | None) -> bytes:
    parts, left = [], length
    while left:
        wait = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([descriptor], [], [], wait)[0]:
            raise FrameError("it took too long")
        part = os.read(descriptor, min(left, _CHUNK))
        if not part:
            raise FrameError("it ended")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
