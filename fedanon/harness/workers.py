"""Tasks over processes, or over the machines of a Ray cluster. A task that fails or dies takes no other with it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process

from fedanon.anonymizers.ray_cluster import ray_cluster
from fedanon.errors import FedanonError
from fedanon.harness.tasks.base import Outcome, Task


@dataclass(frozen=True)
class Done:
    """A finished task: an outcome, or what went wrong."""

    outcome: Outcome | None
    seconds: float
    error: str = ""


def compute(task: Task) -> Done:
    """Run a task; errors become text. A foreign error's own text may quote cells, so only its kind is kept."""
    start = time.perf_counter()
    outcome, error = None, ""
    try:
        outcome = task.run()
    except FedanonError as expected:
        error = str(expected)
    except Exception as foreign:
        error = f"internal error ({type(foreign).__name__}); run the cell alone with FEDANON_DEBUG=1"
        if os.environ.get("FEDANON_DEBUG"):
            raise
    return Done(outcome, time.perf_counter() - start, error)


def over_processes(tasks: Iterable[tuple[str, Task]], workers: int) -> Iterator[tuple[str, Done]]:
    """Results as they come, by the key given with each task.

    Tasks in flight when a process died are tried again at the end, each alone, so that a death accuses no other.
    """
    waiting: deque[tuple[str, Task]] = deque(tasks)
    suspects: deque[tuple[str, Task]] = deque()
    while waiting or suspects:
        queue, width = (waiting, workers) if waiting else (suspects, 1)
        running: dict[Future[Done], tuple[str, Task]] = {}
        try:
            with ProcessPoolExecutor(width, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
                while queue or running:
                    # only as many as there are workers: those in flight are the suspects when one dies
                    while queue and len(running) < width:
                        key, task = queue.popleft()
                        running[pool.submit(compute, task)] = key, task
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        done = future.result()
                        yield running.pop(future)[0], done
        except BrokenProcessPool:
            if queue is waiting:
                suspects.extend(running.values())
            else:
                yield from ((key, Done(None, 0.0, "its process died (out of memory?)")) for key, _ in running.values())


def over_ray(tasks: Iterable[tuple[str, Task]], workers: int) -> Iterator[tuple[str, Done]]:
    """The same on Ray: a cluster if RAY_ADDRESS names one, else this machine with ``workers`` processes."""
    with ray_cluster(workers) as ray:
        remote = ray.remote(compute)
        running = {remote.remote(task): key for key, task in tasks}
        while running:
            (ready,), _ = ray.wait(list(running), num_returns=1)
            try:
                done = ray.get(ready)
            except ray.exceptions.RayError as error:
                done = Done(None, 0.0, f"its worker died ({type(error).__name__})")
            yield running.pop(ready), done


def _end_with_parent() -> None:
    """A killed run leaves no process behind: workers end when their parent does."""
    # the processes share the cores already
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
