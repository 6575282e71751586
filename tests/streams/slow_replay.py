"""A replay that is killed again and again at random points: at the n-th sync, rename or publication.

Every try is a process of its own, forked from one that has everything imported; it ends by SIGKILL or by finishing.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedanon.streams import running
from fedanon.streams.config import GatewayConfig
from fedanon.streams.gateway import Gateway


def dying(left: list[int], function: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """The function, killing the process before or after its last call."""

    def call(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **named)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return call


def replay(config: Path, file: Path, count: int) -> None:
    """Replay, and die at the count-th point; 0 lives."""
    if count:
        left = [count]
        os.fsync = dying(left, os.fsync, after=count % 2 == 0)
        Path.replace = dying(left, Path.replace, after=count % 2 == 0)  # type: ignore[method-assign]
        Gateway._show = dying(left, Gateway._show, after=count % 3 == 0)  # type: ignore[method-assign]
    running.BATCH = 3
    running.replay_file(GatewayConfig.read(config), file)


def kill_until_done(config: Path, file: Path, kills: int) -> int:
    """Replay until it ends; how often it was killed."""
    rng, killed = random.Random(kills), 0
    # short lives where there are many, so that it does not end before all are spent
    longest = max(14, 600 // kills)
    with tempfile.TemporaryDirectory() as warm:  # children then find the kernels loaded
        for name in (config, config.with_name("ward.toml")):
            shutil.copy(name, warm)
        running.replay_file(GatewayConfig.read(Path(warm) / config.name), file)
    while True:
        child = os.fork()
        if child == 0:
            try:
                replay(config, file, rng.randrange(1, longest) if killed < kills else 0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        rng.random()
        if status == 0:
            return killed
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            raise SystemExit("It ended by itself, and wrong.")
        killed += 1


if __name__ == "__main__":
    print(kill_until_done(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
