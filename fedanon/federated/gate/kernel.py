"""The calls of Linux that Python does not offer, by ctypes; each raises OSError as Python's own would."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

#: of prctl
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_CAPABILITY_VERSION = 0x20080522

# calls that are younger than the split of numbers by architecture: they have the same number everywhere
MOUNT_SETATTR, LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 442, 444, 445, 446
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_RDONLY, _NOSUID, _NODEV = 1, 2, 4
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2


def call(name: str, *arguments: object) -> int:
    """A function of libc that returns -1 on failure."""
    if _LIBC is None:
        raise OSError(f"{name} is a call of Linux")
    done = int(getattr(_LIBC, name)(*arguments))
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return done


def syscall(number: int, *arguments: object) -> int:
    """A call of the system by its number."""
    return call("syscall", ctypes.c_long(number), *arguments)


def prctl(option: int, value: int = 0) -> None:
    """Change something about this process."""
    call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def mount(source: Path | str, target: Path, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or bind a folder or file to another place."""
    texts = [os.fsencode(text) or None for text in (str(source), str(target), kind)]
    call("mount", *texts, ctypes.c_ulong(flags), os.fsencode(options) or None)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def make_read_only(target: Path, *, recursive: bool = True) -> None:
    """Have nobody write below a mount, nor gain rights or reach devices through it; also below those inside."""
    wanted = _MountAttributes(_RDONLY | _NOSUID | _NODEV, 0, 0, 0)
    path, flags = os.fsencode(target), _AT_RECURSIVE if recursive else 0
    syscall(MOUNT_SETATTR, _AT_FDCWD, path, flags, ctypes.byref(wanted), ctypes.sizeof(wanted))


def pivot_into(root: Path) -> None:
    """Make a mount the root of this process, and let go of the old one."""
    os.chdir(root)
    call("pivot_root", b".", b".")
    call("umount2", b".", _MNT_DETACH)
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up every right of an administrator, also for what is executed later."""
    for number in range(64):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:  # the kernel knows no more of them, or we never had the right to drop any
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
