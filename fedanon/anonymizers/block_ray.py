"""Blocks as tasks of a Ray cluster: the one RAY_ADDRESS names, or one on this machine that ends with the work."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from fedanon.anonymizers import progress
from fedanon.anonymizers.block_engines import Found, StopRequests, Task, work
from fedanon.anonymizers.ray_cluster import ray_cluster

#: a search asks no more often than this whether it has been stopped, in seconds
ASK_AGAIN = 0.5


def over_ray(tasks: list[Task], workers: int) -> list[Found]:
    """On Ray, at most ``workers`` tasks at a time; a task takes its block along, so no machine needs the table."""
    with ray_cluster(workers) as ray:
        flag = ray.remote(num_cpus=0)(Flag).remote()
        requests = StopRequests(tasks, lambda: ray.get(flag.put_up.remote()))
        remote = ray.remote(_work)
        started: list[Any] = []
        found: dict[Any, Found] = {}
        # the first tasks start at once, each other when one more has finished
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
        """Stop them."""
        self.up = True

    def is_up(self) -> bool:
        """Whether they are to stop."""
        return self.up


class _Asking:
    """The watcher of a task: asks the flag now and then."""

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


def _work(task: Task, flag: Any) -> Found:
    with progress.watching(_Asking(flag)):
        return work(task)


def _result(ray: Any, task: Any) -> Found:
    try:
        found: Found = ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    return found
