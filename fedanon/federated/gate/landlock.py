"""Landlock: rules of the kernel (5.13 and later) about which files this process and its children may open.

It needs no rights at all, so it stands where namespaces are not allowed, and beside them where they are. Sizes and
times of a file whose path is known can still be asked for (`stat`), its content cannot be opened.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from fedanon.federated.gate import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
#: all kinds of access, by version of the interface: those of files (13), rename across folders, truncate, device ioctl
_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
#: bind and connect of TCP; abstract sockets and signals beyond the domain
_NETWORK, _SCOPES = 3, 3
_PATH_BENEATH = 1
_ASK_VERSION = 1


class _Ruleset(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scopes")]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Of the kernel's interface; 0 where there is none."""
    try:
        return kernel.syscall(kernel.LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    except OSError:
        return 0


def restrict(readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path]) -> int:
    """Close all files to this process but those below some folders, for good; the version in force.

    Raises
    ------
    OSError
        If the kernel has no Landlock.
    """
    known = version()
    if not known:
        raise OSError("this kernel has no Landlock")
    handled = _FILES[max(number for number in _FILES if number <= known)]
    rules = _Ruleset(handled, _NETWORK if known >= 4 else 0, _SCOPES if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    made = kernel.syscall(kernel.LANDLOCK_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    try:
        for path in readable:
            _allow(made, path, EXECUTE | READ_FILE | READ_DIR)
        for path in writable:
            _allow(made, path, handled & ~EXECUTE)
        for path in devices:
            _allow(made, path, READ_FILE | WRITE_FILE)
        kernel.syscall(kernel.LANDLOCK_RESTRICT_SELF, made, 0)
    finally:
        os.close(made)
    return known


def _allow(rules: int, path: Path, access: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Beneath(access, place)
        kernel.syscall(kernel.LANDLOCK_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)
