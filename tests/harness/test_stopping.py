"""Signals to end become a note, and the handlers of before come back."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fedanon.harness.tasks.base import CellResult, Task
from fedanon.harness.workers import SIGNALS, handlers_kept, over_processes, stop_requests


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """A failed test leaves those of pytest as they were; a shell may have Ctrl-C ignored."""
    with handlers_kept():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_noted_and_nothing_else(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_requests() as stopped:
        assert not stopped()
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert stopped()
    assert signal.getsignal(number) is before


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_requests() as stopped:
        signal.raise_signal(signal.SIGINT)
        assert not stopped()


def test_a_thread_can_run_but_is_never_stopped() -> None:
    said: list[bool] = []

    def work() -> None:
        with stop_requests() as stopped:
            said.append(stopped())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == [False]


@dataclass(frozen=True, kw_only=True)
class Sleep(Task):
    """Takes as many seconds as its seed says."""

    def run(self) -> CellResult:
        time.sleep(self.seed)
        return CellResult({"slept": float(self.seed)})


def test_no_task_begins_after_a_stop_and_none_is_waited_for() -> None:
    finished: list[str] = []
    tasks = [(str(seconds), Sleep(seed=seconds)) for seconds in (0, 600, 601)]
    start = time.monotonic()
    for key, _ in over_processes(tasks, 1, lambda: bool(finished)):
        finished.append(key)
    assert finished == ["0"]
    assert time.monotonic() - start < 60
    assert list(over_processes(tasks, 1, lambda: True)) == []
