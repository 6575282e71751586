"""The walls around somebody else's app: raised inside its process before any of its code is read, then tried.

What is in force is not what was asked for but what was tried: a file outside, a socket, the memory of another process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fedanon.federated.gate import kernel, landlock, namespaces, seccomp

#: what can be asked for; the first two each close files and processes, the last closes calls
NAMESPACES, LANDLOCK, SECCOMP = "namespaces", "landlock", "seccomp"
EVERY = (NAMESPACES, LANDLOCK, SECCOMP)
PACKAGE = Path(__file__).parents[2]
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
MAX_FILES, MAX_THREADS, MAX_FILE_MB = 256, 256, 256


@dataclass(frozen=True)
class WallPlan:
    """What a process is to be closed in with.

    Parameters
    ----------
    root : an empty private folder, where the files of the app are put together.
    scratch : one it may write to where there are no namespaces.
    outside : a file that it must not be able to open.
    memory_mb, cpu_seconds : limits; each of the two folders for its files may hold as much again.
    asked : which of `EVERY` to use.
    """

    root: str
    scratch: str
    outside: str
    memory_mb: int
    cpu_seconds: int
    asked: tuple[str, ...] = EVERY


@dataclass(frozen=True)
class Standing:
    """Which walls stand, and what was tried against them.

    Parameters
    ----------
    namespaces, seccomp : whether they are in force.
    landlock : version of its interface; 0 where it is not in force.
    closed : what was tried in vain: `files`, `network`, `processes`, `writing`.
    missing : why something is not in force, by its name.
    """

    namespaces: bool = False
    landlock: int = 0
    seccomp: bool = False
    closed: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)

    TRIED = ("files", "network", "processes", "writing")

    @property
    def enough(self) -> bool:
        """Whether an app that is not trusted may run: calls filtered, files closed, and nothing tried succeeded."""
        return self.seccomp and (self.namespaces or self.landlock > 0) and set(self.closed) == set(self.TRIED)

    def to_dict(self) -> dict[str, Any]:
        """For the log."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Standing:
        """As it was told by the process itself, before it read any code of the app."""
        return cls(**{**found, "closed": tuple(found["closed"])})

    def describe(self) -> str:
        """In words."""
        stand = ["namespaces (files, processes, network, users of its own)"] * self.namespaces
        stand += [f"Landlock {self.landlock}"] * bool(self.landlock) + ["seccomp"] * self.seccomp
        missing = "".join(f"; no {name}: {reason}" for name, reason in self.missing.items())
        opened = [what for what in self.TRIED if what not in self.closed]
        return f"{', '.join(stand) or 'none'}{missing}" + (f"; OPEN: {', '.join(opened)}" if opened else "")


def readable_folders() -> list[Path]:
    """What an app may read beside its own files and the release: Python, installed packages, libraries."""
    paths = sysconfig.get_paths()
    python = [Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    python += [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    system = [Path(name) for name in SYSTEM]
    found = [path for path in (*python, PACKAGE, *system) if path.is_dir()]
    distinct = list(dict.fromkeys(found))
    return [path for path in distinct if not any(path != other and path.is_relative_to(other) for other in distinct)]


# ---- in the process of the app -------------------------------------------------------------------


def fork_guarded(plan: WallPlan) -> Standing:
    """Return in a child that is ended with everything it starts when this process, which never returns, ends."""
    standing, gate = Standing(), os.getppid()
    if NAMESPACES in plan.asked:
        try:
            namespaces.leave()
            standing = replace(standing, namespaces=True)
        except OSError as error:
            standing = _without(standing, NAMESPACES, error)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    app = os.fork()
    if app:
        _guard(app, gate)
    os.setpgid(0, 0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return standing


def _guard(app: int, gate: int) -> None:
    """Wait for the app, or for the order to end it; then nothing it started is left."""
    with contextlib.suppress(OSError):
        os.setpgid(app, app)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != gate:  # it ended before we asked to be told
        os.kill(os.getpid(), signal.SIGTERM)
    for descriptor in range(3, MAX_FILES):  # only the app answers
        with contextlib.suppress(OSError):
            os.close(descriptor)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    code = 1
    while True:
        ended, status = os.waitpid(app, os.WNOHANG)
        if ended:
            code = 0 if status == 0 else 1
            break
        if signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM:
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(app, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    os._exit(code)


def raise_walls(plan: WallPlan, standing: Standing) -> Standing:
    """In the child: close everything in, for good, and try it."""
    readable = readable_folders()
    scratch = Path(plan.scratch)
    if standing.namespaces:
        try:
            namespaces.furnish(Path(plan.root), readable, plan.memory_mb)
            scratch = namespaces.TMP
        except OSError as error:  # a system may allow namespaces without what they are for
            return _without(replace(standing, namespaces=False), NAMESPACES, error)
    os.chdir(scratch)
    _limit(plan)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    if standing.namespaces:
        kernel.drop_capabilities()
    if LANDLOCK in plan.asked:
        writable = [scratch, namespaces.SHARED_MEMORY] if standing.namespaces else [scratch]
        try:
            version = landlock.restrict(readable, writable, namespaces.DEVICES)
            standing = replace(standing, landlock=version)
        except OSError as error:
            standing = _without(standing, LANDLOCK, error)
    if SECCOMP in plan.asked:
        try:
            seccomp.restrict()
            standing = replace(standing, seccomp=True)
        except OSError as error:
            standing = _without(standing, SECCOMP, error)
    return replace(standing, closed=tuple(_tried_in_vain(Path(plan.outside), readable)))


def _without(standing: Standing, name: str, error: OSError) -> Standing:
    return replace(standing, missing={**standing.missing, name: str(error)})


def _limit(plan: WallPlan) -> None:
    import resource  # not on every system, and the gate reads this module as well

    memory = plan.memory_mb << 20
    file = min(memory, MAX_FILE_MB << 20)
    limits = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_FSIZE: file,
        resource.RLIMIT_CPU: plan.cpu_seconds,
        resource.RLIMIT_NOFILE: MAX_FILES,
        resource.RLIMIT_NPROC: MAX_THREADS,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in limits.items():
        _, most = resource.getrlimit(kind)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (value, value))


def _tried_in_vain(outside: Path, readable: list[Path]) -> Iterable[str]:
    """What an app would try first; what does not fail is left out."""
    if _fails(lambda: outside.read_bytes()) and _fails(lambda: Path("/proc/1/environ").read_bytes()):
        yield "files"
    if all(_fails(lambda family=family: socket.socket(family).close()) for family in (socket.AF_INET, socket.AF_UNIX)):
        yield "network"
    if _fails(_read_parent) and _fails(lambda: os.kill(os.getppid() or 1, 0)):
        yield "processes"
    if all(_fails(lambda path=path: _write_into(path)) for path in readable):
        yield "writing"


def _fails(attempt: Any) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False


def _write_into(folder: Path) -> None:
    """Make a file that was not there, and leave none."""
    path = folder / f"fedanon.{os.getpid()}.probe"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    path.unlink()


def _read_parent() -> None:
    """Read the memory of the process that started this one, as a debugger would."""
    kernel.call(
        "process_vm_readv", os.getppid() or 1, None, ctypes.c_ulong(0), None, ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
