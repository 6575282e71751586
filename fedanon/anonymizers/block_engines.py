"""Engines that process blocks: one after the other, by processes of this machine, or by a Ray cluster.

All engines give the same result for the same tasks: a block brings its own random numbers. A search that is stopped,
by a watcher or by Ctrl-C, ends with the best it has found, and so do the blocks that come after it.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, get_context
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fedanon.anonymizers import progress
from fedanon.anonymizers.base import KAnonymizer
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.types import IntArray, Rng

T = TypeVar("T")


class BlockTask(NamedTuple):
    """A block, the method for it and its random numbers."""

    method: KAnonymizer
    block: Table
    rng: Rng


class Found(NamedTuple):
    """Class of every row of a block, and the notes of the method."""

    labels: IntArray
    notes: tuple[str, ...]


def work(task: BlockTask) -> Found:
    """Anonymize a block."""
    plan = task.method.plan(task.block, task.rng)
    return Found(plan.groups.labels, plan.notes)


def one_by_one(tasks: list[BlockTask]) -> list[Found]:
    """Process the blocks one after the other, in this process."""
    total = sum(len(task.block) for task in tasks)
    found: list[Found] = []
    done, going = 0, True
    for task in tasks:
        end = done + len(task.block)
        with progress.part(done / total, end / total) if going else progress.watching(progress.stop):
            found.append(work(task))
        done, going = end, going and not found[-1].notes
    return found


def over_processes(tasks: list[BlockTask], workers: int) -> list[Found]:
    """Process the blocks in ``workers`` processes of this machine."""
    # a fresh interpreter for each worker: forking a process with threads is not safe
    context = get_context("spawn")
    stopped, others = context.Event(), active_children()
    requests = StopRequests(tasks, stopped.set)
    with ProcessPoolExecutor(min(workers, len(tasks)), context, _watch, (stopped,)) as pool:
        try:
            with _interrupts_postponed() as interrupts:
                futures = [pool.submit(work, task) for task in tasks]
            if interrupts:
                requests.interrupted()
            running = set(futures)
            while running:
                # whichever is first: a watcher that waits for the first block may find that all others have finished
                finished, running = requests.during(partial(wait, running, return_when=FIRST_COMPLETED))
                for future in finished:
                    future.result()  # an error ends the work at once
                requests.report(1 - len(running) / len(tasks))
        except BaseException:
            for process in active_children():
                if process not in others:
                    process.terminate()
            raise
        return [future.result() for future in futures]


class StopRequests:
    """Passes what a watcher or Ctrl-C asks of this process on to those that do the work.

    Parameters
    ----------
    tasks : what they work on, all with the same method.
    stop : lets their searches end with what they have.
    """

    def __init__(self, tasks: list[BlockTask], stop: Callable[[], Any]) -> None:
        # a method with a time budget searches until it is used up
        self.searching = hasattr(tasks[0].method, "seconds")
        self.stop = stop
        self.asked = False

    def during(self, wait: Callable[[], T]) -> T:
        """The result of ``wait``, also if Ctrl-C is pressed; pressed again, or where nothing searches, it is obeyed."""
        while True:
            try:
                return wait()
            except KeyboardInterrupt:
                self.interrupted()

    def interrupted(self) -> None:
        """Ctrl-C was pressed."""
        if self.asked or not self.searching:
            raise KeyboardInterrupt
        self.ask()

    def report(self, share: float) -> None:
        """Report to the watcher how much is done, and pass on its answer."""
        if not progress.report(share, np.nan):
            self.ask()

    def ask(self) -> None:
        """Stop the searches."""
        self.asked = True
        self.stop()


def _watch(stopped: Event) -> None:
    """Let every search of a worker see whether it was stopped."""
    progress.watch(lambda _share, _loss: not stopped.is_set())


@contextmanager
def _interrupts_postponed() -> Iterator[list[int]]:
    """Processes started inside the block do not receive Ctrl-C, which would end those that are still starting.

    They inherit the blocked signal for good. Signals for this process that arrive meanwhile are in the list afterwards.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    # another thread may receive what this one blocks, and its handler runs here all the same: so it only takes note
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield came
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, before)


# ---- Ray -----------------------------------------------------------------------------------------

#: a search asks no more often than this whether it has been stopped, in seconds
ASK_AGAIN = 0.5


def over_ray(tasks: list[BlockTask], workers: int) -> list[Found]:
    """Process the blocks on Ray, at most ``workers`` at a time; a task carries its block, so none needs the table."""
    with ray_cluster(workers) as ray:
        flag = ray.remote(num_cpus=0)(Flag).remote()
        requests = StopRequests(tasks, lambda: ray.get(flag.put_up.remote()))
        remote = ray.remote(_work)
        started: list[Any] = []
        found: dict[Any, Found] = {}
        # the first tasks start at once, every further one when another has finished
        for finished in range(1 - workers, len(tasks) + 1):
            if finished > 0:
                ready, _ = requests.during(partial(ray.wait, started, num_returns=finished))
                found |= {task: _result(ray, task) for task in ready if task not in found}
                requests.report(finished / len(tasks))
            if len(started) < len(tasks):
                started.append(remote.remote(tasks[len(started)], flag))
        return [found[task] for task in started]


class Flag:
    """An actor that the tasks of all machines can ask whether to stop."""

    def __init__(self) -> None:
        self.up = False

    def put_up(self) -> None:
        """Ask all tasks to stop."""
        self.up = True

    def is_up(self) -> bool:
        """Whether the tasks are to stop."""
        return self.up


class _FlagWatcher:
    """The watcher of a task: asks the flag from time to time."""

    def __init__(self, flag: Any) -> None:
        self.flag = flag
        self.again = 0.0
        self.stopped = False

    def __call__(self, _share: float, _loss: float) -> bool:
        import ray

        if not self.stopped and time.monotonic() >= self.again:
            self.stopped = ray.get(self.flag.is_up.remote())
            self.again = time.monotonic() + ASK_AGAIN
        return not self.stopped


def _work(task: BlockTask, flag: Any) -> Found:
    with progress.watching(_FlagWatcher(flag)):
        return work(task)


def _result(ray: Any, task: Any) -> Found:
    try:
        found: Found = ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    return found


@contextmanager
def ray_cluster(workers: int) -> Iterator[Any]:
    """Ray with a cluster that is left as it was found; a cluster started here has ``workers`` processes."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # no warning about missing accelerators
    try:
        import ray
    except ModuleNotFoundError:
        raise ConfigError("The ray engine needs Ray: pip install 'fedanon[simulation]'.") from None
    started = not ray.is_initialized()
    if started:
        here = {"num_cpus": workers, "include_dashboard": False}
        limits: dict[str, Any] = {} if os.environ.get("RAY_ADDRESS") else here
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **limits)
        except ConnectionError:
            raise ConfigError("No Ray cluster answers at the address in RAY_ADDRESS.") from None
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()
