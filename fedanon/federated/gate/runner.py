"""The gate's side of an app's process: starts it, gives it the release once its walls stand, and takes one reply."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from flwr.app import Context, Message, RecordDict
from flwr.common.serde import context_to_proto, message_to_proto, recorddict_from_proto
from flwr.proto.recorddict_pb2 import RecordDict as PlainRecords

from fedanon.errors import ConfigError, RefusedError
from fedanon.federated.gate import walls
from fedanon.federated.gate.frames import FrameError, read_frame, write_frame
from fedanon.federated.gate.limits import AppLimits

log = logging.getLogger("fedanon")

#: for the walls to stand; a busy machine takes its time, and nothing has been given away by then
START_SECONDS = 120.0
STOP_SECONDS = 10.0
#: of what is told of the walls, of a reply beside its numbers, and of what an app prints that is kept
TOLD, BESIDE, PRINTED = 1 << 14, 1 << 20, 2000
#: all that an app finds in its environment
ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LOGNAME": "app",
    "USER": "app",
    "TZ": "UTC",
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class AppJob:
    """What an app is to do.

    Parameters
    ----------
    bundle : its code.
    message, context : as its ClientApp is called with; the context names no file of the node.
    release : as bytes.
    """

    bundle: bytes
    message: Message
    context: Context
    release: bytes


@dataclass(frozen=True)
class AppOutcome:
    """What came back: not trusted.

    Parameters
    ----------
    content : of the reply.
    state : what the app wants to remember.
    standing : the walls behind which it ran.
    """

    content: RecordDict
    state: RecordDict
    standing: walls.Standing


def run(job: AppJob, limits: AppLimits, *, require: bool = True, asked: Sequence[str] = walls.EVERY) -> AppOutcome:
    """Have an app answer, in a process of its own that ends before this returns.

    Parameters
    ----------
    job : what it is to do.
    limits : how long, how much.
    require : whether to refuse where the walls are not enough.
    asked : walls to raise.

    Raises
    ------
    RefusedError
        If the walls do not stand, or the app fails in any way: of kind 'walls' or 'app'.
    """
    with _standing(limits, require=require, asked=asked) as cell:
        try:
            return cell.answer(job, limits)
        except (FrameError, OSError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}" if isinstance(error, FrameError) else type(error).__name__
            log.warning("An app gave no reply (%s). The end of what it printed:\n%s", reason, cell.printed())
            raise RefusedError("app", f"The app gave no reply: {reason}.") from None


def try_walls(memory_mb: int = 4096) -> walls.Standing:
    """Which walls stand on this machine."""
    limits = AppLimits(memory_mb=memory_mb, replies={"query": {}})
    with _standing(limits, require=False, asked=walls.EVERY) as cell:
        return cell.standing


@contextlib.contextmanager
def _standing(limits: AppLimits, *, require: bool, asked: Sequence[str]) -> Iterator[_Cell]:
    """A process behind its walls, given nothing yet; without namespaces where a system does not allow them."""
    with _Cell(limits, asked) as cell:
        if cell.standing.enough or walls.NAMESPACES not in cell.standing.missing:
            yield _accepted(cell, require)
            return
        missing = cell.standing.missing
    with _Cell(limits, [name for name in asked if name != walls.NAMESPACES]) as cell:
        cell.standing.missing.update(missing)
        yield _accepted(cell, require)


def _accepted(cell: _Cell, require: bool) -> _Cell:
    if require and not cell.standing.enough:
        raise RefusedError(
            "walls",
            f"The walls around an app do not stand on this machine ({cell.standing.describe()}). It needs seccomp "
            "(libseccomp2), and namespaces or Landlock; app_walls = 'any' in node.toml would run it without.",
        )
    return cell


class _Cell:
    """The process, as a context: after it nothing of the app runs, and its folder is gone."""

    def __init__(self, limits: AppLimits, asked: Sequence[str]) -> None:
        self._limits = limits
        self._asked = tuple(asked)

    def __enter__(self) -> _Cell:
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedanon-app-")))
            self._output = stack.enter_context(tempfile.TemporaryFile())
            self._replies, writing = os.pipe()
            stack.callback(os.close, self._replies)
            try:
                self._process = self._start(folder, writing)
            finally:
                os.close(writing)
            stack.callback(self._end)
            try:
                told = read_frame(self._replies, TOLD, time.monotonic() + START_SECONDS)
            except FrameError as error:
                raise RefusedError("walls", f"The process of an app did not start: {error}. {self.printed()}") from None
            self.standing = walls.Standing.from_dict(json.loads(told))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, folder: Path, writing: int) -> subprocess.Popen[bytes]:
        root, scratch, outside = (folder / name for name in ("root", "scratch", "outside"))
        root.mkdir()
        scratch.mkdir()
        outside.write_text("not to be read", encoding="ascii")
        limits = self._limits
        seconds = int(limits.seconds) + 1
        plan = walls.WallPlan(str(root), str(scratch), str(outside), limits.memory_mb, seconds, self._asked)
        return subprocess.Popen(
            [sys.executable, "-I", "-B", "-m", "fedanon.federated.gate.cell", json.dumps(asdict(plan)), str(writing)],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            env=ENVIRONMENT,
            cwd=scratch,
            close_fds=True,
            pass_fds=(writing,),
            umask=0o077,
        )

    def answer(self, job: AppJob, limits: AppLimits) -> AppOutcome:
        """Give it its job; take its reply, which may have come from anything that runs behind the walls."""
        assert self._process.stdin is not None
        given = self._process.stdin.fileno()
        message, context = message_to_proto(job.message), context_to_proto(job.context)
        for part in (job.bundle, message.SerializeToString(), context.SerializeToString(), job.release):
            write_frame(given, part)
        self._process.stdin.close()
        until = time.monotonic() + limits.seconds
        most = limits.by_type[job.message.metadata.message_type].bytes + BESIDE
        content = read_frame(self._replies, most, until)
        state = read_frame(self._replies, limits.state_mb * 10**6, until)
        return AppOutcome(_parsed(content), _parsed(state), self.standing)

    def printed(self) -> str:
        """The end of what the app printed, for the people of the node: marked, and nothing that steers a terminal."""
        size = os.fstat(self._output.fileno()).st_size
        text = os.pread(self._output.fileno(), PRINTED, max(0, size - PRINTED)).decode("utf-8", "replace")
        plain = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
        return "\n".join(f"  app | {line}" for line in plain.splitlines())

    def _end(self) -> None:
        """The one who guards the app ends it with everything it started, then itself."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:  # before it has begun to guard anything
            self._process.kill()
            self._process.wait()


def _parsed(data: bytes) -> RecordDict:
    try:
        return recorddict_from_proto(PlainRecords.FromString(data))
    except Exception:
        raise ValueError("not the records of a message") from None


def refuse_within_reach(paths: Sequence[Path]) -> None:
    """Raise ConfigError if files of the node lie where apps may read: among the packages of this Python."""
    for path in paths:
        for folder in walls.readable_folders():
            if path.resolve().is_relative_to(folder.resolve()):
                raise ConfigError(
                    f"The file {path.name} of this node lies in {folder}, which apps may read: move it elsewhere."
                )
