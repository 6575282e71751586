"""Namespaces: a process that sees files, processes and network devices of its own, and none of the machine's.

No rights of an administrator are needed, but a kernel that lets ordinary users make user namespaces.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from fedanon.federated.gate import kernel

#: mount, cgroup, host name, System V and POSIX queues, users, processes, network
ALL = 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
#: who the app is inside
USER = 1000
DEVICES = tuple(Path("/dev") / name for name in ("null", "zero", "random", "urandom"))
SHARED_MEMORY = Path("/dev/shm")
TMP = Path("/tmp")


def leave() -> None:
    """Enter new namespaces; the next child is the first process of the new one.

    Raises
    ------
    OSError
        If the kernel does not let this user make them.
    """
    user, group = os.getuid(), os.getgid()
    kernel.call("unshare", ALL)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")
    (own / "uid_map").write_text(f"{USER} {user} 1", encoding="ascii")
    (own / "gid_map").write_text(f"{USER} {group} 1", encoding="ascii")


def furnish(root: Path, readable: Sequence[Path], megabytes: int) -> None:
    """In the child: make ``root`` the only files there are. ``readable`` lie where they lay, and cannot be written.

    There is no /proc, no /sys and no /etc; what is written to /tmp and /dev/shm is memory of at most ``megabytes``.
    """
    secure = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("none", Path("/"), flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", secure, "size=1m,mode=755")
    for path in (TMP, SHARED_MEMORY):  # first: what is readable may lie below /tmp
        place = _inside(root, path)
        place.mkdir(parents=True)
        kernel.mount("tmpfs", place, "tmpfs", secure | kernel.MS_NOEXEC, f"size={megabytes}m,mode=700")
    for path in readable:
        _show(path, root)
    for path in DEVICES:
        _bind(path, root)
    kernel.pivot_into(root)
    kernel.make_read_only(Path("/"), recursive=False)
    socket.sethostname("app")


def _inside(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _show(path: Path, root: Path) -> None:
    place = _inside(root, path)
    if path.is_symlink():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(path.readlink())
        return
    place.mkdir(parents=True, exist_ok=True)
    kernel.mount(path, place, flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.make_read_only(place)


def _bind(path: Path, root: Path) -> None:
    place = _inside(root, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    kernel.mount(path, place, flags=kernel.MS_BIND)
