"""Apps that want raw rows get none: behind all walls, behind those of a kernel without namespaces, and in no reply.

The control runs the same apps without walls: an attack that never works proves nothing.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedanon.federated import wire
from fedanon.federated.gate import app as gate
from fedanon.federated.gate import runner, walls
from fedanon.federated.gate.tripwire import Tripwire
from tests.federated.exfiltration import APPS, WIDE, bundle
from tests.federated.foreign import AppServer, Canaries, bytes_of, folder_bytes, limits, write_canaries
from tests.federated.hostile_server import make_node

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")

WITHOUT_NAMESPACES = (walls.LANDLOCK, walls.SECCOMP)
#: apps that find raw values, or reach the outside, where no wall stands
WORK_WITHOUT_WALLS = ("files", "links", "parents", "memory", "sockets", "writing", "shared memory")
REFUSED = ["RefusedError: This node refuses to answer: app."]


class Outside:
    """What lies around a node for an app to find or to reach; all of it holds canaries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = write_canaries(folder)
        self.control = False  # without walls an app writes into its own folder of the test alone
        self.mark = f"fedanon-test-{os.getpid()}-{folder.name}"
        self._stack = ExitStack()
        self._listeners: list[socket.socket] = []
        self._segment = -1

    def __enter__(self) -> Outside:
        self.canary = canary = self.table.read_bytes()[:4000]  # in the memory of the gate all the while
        for family, kind, address in (
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "s")),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.mark}"),
        ):
            listener = self._stack.enter_context(socket.socket(family, kind))
            listener.bind(address)
            listener.listen()
            listener.setblocking(False)
            self._listeners.append(listener)
        shared = Path("/dev/shm") / self.mark
        shared.write_bytes(canary)
        self._stack.callback(shared.unlink, missing_ok=True)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        self._segment = libc.shmget(self.key, 4096, 0o1600)
        ctypes.memmove(libc.shmat(self._segment, None, 0), canary, len(canary))
        self._stack.callback(libc.shmctl, self._segment, 0, None)
        inherited = os.open(self.table, os.O_RDONLY)
        os.set_inheritable(inherited, True)
        self._stack.callback(os.close, inherited)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def key(self) -> int:
        return hash(self.mark) & 0x7FFFFFFF

    @property
    def told(self) -> dict[str, Any]:
        port = self._listeners[0].getsockname()[1]
        known = {"data": str(self.table), "port": port, "mark": self.mark, "key": self.key}
        return known | {"unix": str(self.folder / "s"), "abstract": self.mark, "control": self.control}

    def received(self) -> int:
        """Connections that somebody made."""
        found = 0
        for listener in self._listeners:
            try:
                listener.accept()[0].close()
                found += 1
            except BlockingIOError:
                continue
        return found

    def left_behind(self) -> list[Path]:
        """Files that an app wrote outside."""
        folders = [self.folder, Path.home(), Path("/var/tmp"), Path("/"), Path("/usr/lib"), *map(Path, sys.path[:8])]
        found = {folder / self.mark for folder in folders if (folder / self.mark).exists()}
        for path in found:
            path.unlink()
        return sorted(found)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    monkeypatch.setenv("FEDANON_CANARY", "CANARY-of-the-environment")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Outside(tmp_path) as found:
        yield found


def play(outside: Outside, name: str) -> tuple[AppServer, Any, int]:
    """A node asks the app once; its answer, and the canaries in everything that left."""
    server = AppServer(make_node(outside.folder, table=outside.table), bundle(name), limits(replies=WIDE, seconds=60))
    server.start(1, outside.told)
    given: list[bytes] = []
    plain = gate.AppJob

    def job(*parts: Any) -> Any:
        given.append(parts[3])
        return plain(*parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "AppJob", job)
        reply = server.ask()
    canaries = Canaries(outside.table, given[0])
    assert len(canaries.values) > 1000, "there is something to find"
    state = repr(server.context.state).encode()
    seen = canaries.seen_in_reply(reply) + canaries.seen_in("\n".join(server.refusals).encode() + state)
    log = folder_bytes(server.node.folder / "apps") + (server.node.folder / "egress.jsonl").read_bytes()
    return server, reply, seen + canaries.seen_in(log) + (b"CANARY-of" in bytes_of(reply))


def check(outside: Outside, name: str) -> Any:
    before = outside.table.stat()
    server, reply, seen = play(outside, name)
    assert seen == 0
    after = outside.table.stat()
    assert (before.st_mode, before.st_size, before.st_mtime) == (after.st_mode, after.st_size, after.st_mtime)
    assert outside.received() == 0
    assert outside.left_behind() == []
    assert processes_in(outside.folder) == []
    if name in ("exceptions", "error replies"):
        assert reply is None
        assert server.refusals == REFUSED
        return None
    assert reply is not None, "it was able to try"
    assert b"TAKEN" not in bytes_of(reply)
    return reply


def processes_in(folder: Path) -> list[str]:
    """Those that apps left behind; the command they were started with names their folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] * (f"{folder}/fedanon-app-".encode() in path.read_bytes())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("name", APPS)
def test_an_app_behind_the_gate_takes_no_raw_value(outside: Outside, name: str) -> None:
    reply = check(outside, name)
    if name == "low bits":
        assert reply.content["arrays"]["0"].data == wire.to_array(np.ones(4, np.float32)).data
    if name == "metrics":
        assert dict(reply.content["metrics"]) == {"num-examples": 240, "loss": 12.346}
        assert reply.metadata.group_id == "1"


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
def test_nor_does_it_on_a_kernel_without_namespaces(
    outside: Outside, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "run", partial(runner.run, asked=WITHOUT_NAMESPACES))
    check(outside, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK_WITHOUT_WALLS)
def test_without_walls_it_does(outside: Outside, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control; as a debugger, an app reads its parent's memory only where the system lets it."""
    monkeypatch.setattr(gate, "run", partial(runner.run, asked=()))
    monkeypatch.setattr(gate, "without_files", lambda context: context)
    monkeypatch.setattr(f"{__name__}.make_node", partial(make_node, app_walls="any"))
    monkeypatch.setattr(Tripwire, "check", lambda *_: None)
    outside.control = True
    _, _, seen = play(outside, name)
    assert seen + outside.received() + len(outside.left_behind()) > 0
