"""Jobs: commands of `fedanon` in processes of their own, whose progress is seen and which can be cancelled.

One runs at a time. The server knows it, not the page: a page that is loaded again, or a second one, shows the same job.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fedanon.errors import ConfigError, FedanonError, InfeasibleError

JobState = Literal["running", "done", "failed", "cancelled"]
#: a report of a broken promise is written all the same
BROKEN_PROMISE = 4
#: seconds between asking a process to end and ending it
PATIENCE = 3.0
#: jobs whose outcome is remembered
REMEMBERED = 50


def shown_command(words: Sequence[str]) -> str:
    """A command as a person types it."""
    return shlex.join(["fedanon", *words])


@dataclass
class Job:
    """A list of commands, run one after the other.

    Parameters
    ----------
    kind : what it makes: a page asks for the last job of its kind.
    commands : words after `fedanon`.
    about : what it is about, such as the number of a release.
    folder : of what it prints and of its progress.
    page : where it was started from.
    leads_to : the page to go on to when it is done, if it is another.
    """

    kind: str
    commands: list[list[str]]
    about: str
    folder: Path
    page: str = "/open"
    leads_to: str = ""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: JobState = "running"
    message: str = ""
    begun: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def elapsed(self) -> float:
        """Seconds it took, or takes so far."""
        return self.seconds or time.monotonic() - self.begun

    @property
    def progress_file(self) -> Path:
        """Where the command tells what it is doing."""
        return self.folder / "progress.jsonl"

    def progress(self) -> list[dict[str, Any]]:
        """All that it told, the last at the end."""
        try:
            lines = self.progress_file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):  # a line that is just being written
                found.append(json.loads(line))
        return found

    def output(self, number: int = -1) -> str:
        """What a command printed."""
        number %= len(self.commands)
        return (self.folder / f"{number}.out").read_text(encoding="utf-8")

    def errors(self, number: int) -> str:
        """The line that says why a command failed."""
        text = (self.folder / f"{number}.err").read_text(encoding="utf-8", errors="replace")
        said = [line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")]
        return said[-1] if said else ""


class Jobs:
    """The jobs of this run of the app."""

    def __init__(self, folder: Path, working_folder: Callable[[], Path]) -> None:
        self._folder, self._working_folder = folder, working_folder
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    @property
    def running(self) -> Job | None:
        """The job that runs."""
        return next((job for job in self._jobs.values() if job.state == "running"), None)

    def get(self, identity: str) -> Job | None:
        """A job by its id."""
        return self._jobs.get(identity)

    def last(self, kind: str, about: str | None = None) -> Job | None:
        """The last job of a kind."""
        found = [job for job in self._jobs.values() if job.kind == kind and about in (None, job.about)]
        return found[-1] if found else None

    def start(
        self,
        kind: str,
        commands: list[list[str]],
        *,
        page: str,
        about: str = "",
        leads_to: str = "",
        finish: Callable[[Job], None] = lambda _: None,
        undo: Callable[[], bool] = lambda: True,
    ) -> Job:
        """Run commands; ``finish`` is called when all are done, ``undo`` if one failed or the job was cancelled.

        What ``undo`` says cannot be undone, such as a release that a ledger knows, is finished all the same.
        """
        with self._lock:
            if self.running is not None:
                raise ConfigError("Something else is running; wait until it is done, or cancel it.")
            job = Job(kind, commands, about, self._folder, page, leads_to)
            job.folder = self._folder / job.id
            job.folder.mkdir()
            self._jobs[job.id] = job
            for old in list(self._jobs)[:-REMEMBERED]:
                del self._jobs[old]
        threading.Thread(target=self._run, args=(job, finish, undo), daemon=True).start()
        return job

    def cancel(self, identity: str) -> None:
        """End a job, if it runs."""
        job = self._jobs.get(identity)
        if job is not None and job.state == "running":
            job.cancelled.set()
            end_process(job.process)

    def close(self) -> None:
        """End whatever runs."""
        for identity in list(self._jobs):
            self.cancel(identity)

    def _run(self, job: Job, finish: Callable[[Job], None], undo: Callable[[], bool]) -> None:
        state: JobState = "done" if self._succeeds(job, self._run_commands, finish) else "failed"
        if job.cancelled.is_set():
            state = "cancelled"
        if state != "done" and not undo():
            job.message = ""
            state = "done" if self._succeeds(job, finish) else "failed"
        job.seconds = time.monotonic() - job.begun
        job.state = state

    @staticmethod
    def _succeeds(job: Job, *works: Callable[[Job], None]) -> bool:
        """Whether all goes well; what does not is told by the job."""
        try:
            for work in works:
                work(job)
        except FedanonError as error:
            job.message = str(error)
        except Exception as error:  # a foreign message may quote a cell
            job.message = f"Internal error ({type(error).__name__})."
        else:
            return True
        return False

    def _run_commands(self, job: Job) -> None:
        for number, words in enumerate(job.commands):
            code = self._run_command(job, number, words)
            if job.cancelled.is_set():
                raise InfeasibleError("")
            if code not in (0, BROKEN_PROMISE if words[0] == "report" else 0):
                raise InfeasibleError(job.errors(number) or f"Internal error (exit code {code}).")

    def _run_command(self, job: Job, number: int, words: list[str]) -> int:
        job.progress_file.unlink(missing_ok=True)
        env = {**os.environ, "FEDANON_PROGRESS": str(job.progress_file), "PYTHONUTF8": "1"}
        with (job.folder / f"{number}.out").open("wb") as out, (job.folder / f"{number}.err").open("wb") as err:
            job.process = subprocess.Popen(
                [sys.executable, "-m", "fedanon.cli", *words],
                cwd=self._working_folder(),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            if job.cancelled.is_set():  # before there was a process to end
                end_process(job.process)
            return job.process.wait()


def end_process(process: subprocess.Popen[bytes] | None) -> None:
    """End a process and those it started."""
    if process is None or process.poll() is not None:
        return
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
            return


def latest(lines: Sequence[Mapping[str, Any]]) -> tuple[float | None, str]:
    """The share that is done, if it is known, and what is being done."""
    return (None, "") if not lines else (float(lines[-1]["share"]), str(lines[-1]["text"]))
