"""Run tasks in processes, or on the machines of a Ray cluster. A task that fails or dies takes no other with it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from typing import Any, Generic, Protocol, TypeVar

from fedanon.anonymizers.block_engines import ray_cluster
from fedanon.errors import FedanonError

#: seconds between two looks at whether to stop
ASK_AGAIN = 0.1


# ---- A request to stop ---------------------------------------------------------------------------
#
# An exception raised by a signal may come anywhere, also between two files that belong together. A flag does not, and a
# second Ctrl-C changes nothing about it.

#: reports whether a stop was requested
Stopped = Callable[[], bool]


SIGNALS = (signal.SIGINT, signal.SIGTERM)


def never() -> bool:
    """No stop is ever requested."""
    return False


@contextmanager
def stop_requests() -> Iterator[Stopped]:
    """Inside the block the signals to end do nothing by themselves; the value it gives reports whether one came."""
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
    """Restore the signal handlers after the block, whatever was installed inside."""
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
    """Python lets only the main thread install handlers."""
    return threading.current_thread() is threading.main_thread()


# ---- Tasks over processes or a cluster -----------------------------------------------------------


R = TypeVar("R", covariant=True)


class Runnable(Protocol[R]):
    """A task that can be sent to another process."""

    def run(self) -> R:
        """Compute the result."""


@dataclass(frozen=True)
class Done(Generic[R]):
    """A finished task: its result, or what went wrong."""

    result: R | None
    seconds: float
    error: str = ""


def compute(task: Runnable[R]) -> Done[R]:
    """Run a task; errors become text. A foreign error's own text may quote cells, so only its kind is kept."""
    start = time.perf_counter()
    result, error = None, ""
    try:
        result = task.run()
    except FedanonError as expected:
        error = str(expected)
    except Exception as foreign:
        error = f"internal error ({type(foreign).__name__}); run the cell alone with FEDANON_DEBUG=1"
        if os.environ.get("FEDANON_DEBUG"):
            raise
    return Done(result, time.perf_counter() - start, error)


def over_processes(
    tasks: Iterable[tuple[str, Runnable[R]]], workers: int, stopped: Stopped = never
) -> Iterator[tuple[str, Done[R]]]:
    """Results as they come, by the key given with each task; when asked to stop, running tasks are ended at once.

    Tasks in flight when a process died are tried again at the end, each alone, so that a death accuses no other.
    """
    waiting: deque[tuple[str, Runnable[R]]] = deque(tasks)
    suspects: deque[tuple[str, Runnable[R]]] = deque()
    while (waiting or suspects) and not stopped():
        queue, width = (waiting, workers) if waiting else (suspects, 1)
        running: dict[Future[Done[R]], tuple[str, Runnable[R]]] = {}
        try:
            with _processes(width) as pool:
                while (queue or running) and not stopped():
                    # only as many as there are workers: those in flight are the suspects when one dies
                    while queue and len(running) < width:
                        with children_spared():
                            running[pool.submit(compute, queue[0][1])] = queue[0]
                        queue.popleft()
                    for future in wait(running, ASK_AGAIN, FIRST_COMPLETED).done:
                        done = future.result()
                        yield running.pop(future)[0], done
        except BrokenProcessPool:
            if queue is waiting:
                suspects.extend(running.values())
            else:
                yield from ((key, Done(None, 0.0, "its process died (out of memory?)")) for key, _ in running.values())


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, also those whose task nobody waits for any more."""
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    finally:
        # a pool of Python 3.14 does it itself, by kill_workers()
        for number, process in list((pool._processes or {}).items()):
            if process.is_alive():  # the number of one that has ended may be another's by now
                _kill(number)
        pool.shutdown()


def _kill(worker: int) -> None:
    """End a worker and what it started; it writes nothing, so nothing is left half done."""
    for kill in (os.killpg, os.kill):  # it has no group yet while it starts
        with suppress(OSError):
            kill(worker, signal.SIGKILL)


def over_ray(
    tasks: Sequence[tuple[str, Runnable[R]]], workers: int, stopped: Stopped = never
) -> Iterator[tuple[str, Done[R]]]:
    """The same on Ray: a cluster if RAY_ADDRESS names one, else this machine with ``workers`` processes."""
    if not tasks or stopped():  # a cluster takes seconds to start
        return
    with ExitStack() as stack:
        with handlers_kept():  # Ray puts its own in their place
            ray = stack.enter_context(ray_cluster(workers))
        remote = ray.remote(compute)
        running = {} if stopped() else {remote.remote(task): key for key, task in tasks}
        try:
            while running and not stopped():
                ready, _ = ray.wait(list(running), num_returns=1, timeout=ASK_AGAIN)
                for each in ready:
                    yield running.pop(each), _fetched(ray, each)
        finally:
            for each in running:
                ray.cancel(each, force=True)


def _fetched(ray: Any, finished: Any) -> Done[Any]:
    try:
        done: Done[Any] = ray.get(finished)
    except ray.exceptions.RayError as error:
        return Done(None, 0.0, f"its worker died ({type(error).__name__})")
    return done


def _end_with_parent() -> None:
    """A killed run leaves no process behind: workers end when their parent does, with all that they started."""
    # the processes share the cores already
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.setpgid(0, 0)  # a group of its own, which can be ended as one
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
