"""A request to stop: Ctrl-C or a signal to end is noted when it comes, and obeyed where nothing can be lost.

An exception raised by a signal may come anywhere, also between two files that belong together. A note cannot, and a
second Ctrl-C adds nothing to it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: tells whether one was asked to stop
Stopped = Callable[[], bool]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def never() -> bool:
    """Nobody asks to stop."""
    return False


@contextmanager
def stop_requests() -> Iterator[Stopped]:
    """Inside, the signals to end do nothing by themselves; what is given tells whether one came."""
    if not _handles_signals():
        yield never
        return
    came: list[int] = []
    with handlers_kept():
        for number in SIGNALS:
            # what a shell starts in the background ignores Ctrl-C, which is meant for others
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, _frame: came.append(number))
        yield lambda: bool(came)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Whatever handles the signals inside, the handlers of before are back afterwards."""
    before = {number: signal.getsignal(number) for number in SIGNALS} if _handles_signals() else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def children_spared() -> Iterator[None]:
    """Processes started inside inherit Ctrl-C as blocked: a terminal sends it to all, and this one answers for all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _handles_signals() -> bool:
    """Python lets the main thread alone."""
    return threading.current_thread() is threading.main_thread()
