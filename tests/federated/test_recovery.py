"""Processes killed at any point: the run goes on to the same model with `--resume`, and nobody touches the nodes."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.federated.deployed import PATIENCE, Deployed, deployed, wait_until
from tests.federated.test_deployment import assert_same, checkpoint_round, deployed_result, local_result

RUN = """
method = "mondrian"
model = "lr"
rounds = 6
method_settings = { k = 4 }
"""
#: how many points the long test kills at, and where its random numbers begin
CRASHES = int(os.environ.get("FEDANON_CRASHES", "100"))
SEED = int(os.environ.get("FEDANON_SEED", "0"))
#: what marks the processes of a federation by their command lines, outermost first
MARKS = {
    "server": "server run",
    "superlink": "deployment.superlink",
    "superexec": "flower-superexec",
    "serverapp": "flwr-serverapp",
    "client": "flwr run",
}
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def descendants(process: int) -> Iterator[int]:
    """A process and all it has started, as the kernel knows them."""
    yield process
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split():
            yield from descendants(int(child))


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def find(process: int, mark: str) -> int | None:
    """The process of a family whose command line has a mark."""
    return next((each for each in descendants(process) if mark in command_line(each)), None)


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and is not yet cleared away does not."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except OSError:
        return False


def kill(process: int | None) -> None:
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("victim", ["server", pytest.param("serverapp", marks=pytest.mark.slow)])
def test_a_run_goes_on_after_a_process_was_killed(tmp_path, monkeypatch, victim):
    with deployed(tmp_path, RUN, nodes=2) as found:
        server = found.start_server()
        nodes = [found.start_node(number) for number in range(2)]
        wait_until(lambda: checkpoint_round(found) >= 1, "no first round", alive=server)
        family = list(descendants(server.pid))
        kill(find(server.pid, MARKS[victim]))
        assert server.wait(PATIENCE) != 0
        wait_until(lambda: not any(map(is_alive, family)), "children outlive their parent")
        found.finish(found.start_server("--resume"))
        assert_same(deployed_result(found), local_result(found, monkeypatch))
        assert [node.poll() for node in nodes] == [None, None]


@pytest.mark.slow
def test_a_server_whose_run_has_just_been_started_by_a_process_that_dies_ends(tmp_path):
    """The run's own process has no pid file yet, and a client follows the run: the SuperLink must not wait for it."""
    with deployed(tmp_path, RUN, nodes=2) as found:
        server = found.start_server()
        wait_until(lambda: find(server.pid, MARKS["serverapp"]) is not None, "no run", alive=server)
        family = list(descendants(server.pid))
        kill(find(server.pid, MARKS["superexec"]))
        assert server.wait(PATIENCE) != 0
        wait_until(lambda: not any(map(is_alive, family)), "children outlive their parent")


@pytest.mark.slow
def test_random_crashes_do_not_change_the_model(tmp_path, monkeypatch):
    """Kill one process of a run, or all of its server, at random points; a node that is killed is started again."""
    rng = random.Random(SEED)
    with deployed(tmp_path, RUN, nodes=2) as found:
        expected = local_result(found, monkeypatch)
        nodes = [found.start_node(number) for number in range(2)]
        for crash in range(CRASHES):
            victim, delay = rng.choice([*MARKS, "all", "node", "worker"]), rng.uniform(0, 12)
            print(f"crash {crash}: {victim} after {delay:.1f} s", flush=True)
            server = found.start_server("--restart")
            wait_for(delay, server)
            strike(found, victim, server, nodes, rng)
            if victim in ("node", "worker"):
                assert server.wait(PATIENCE) == 0, found.said("server.log")[-5_000:]
            elif server.wait(PATIENCE) != 0:
                found.finish(found.start_server("--resume"))
            assert_same(deployed_result(found), expected)
            assert [node.poll() for node in nodes] == [None, None]


def wait_for(seconds: float, server: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(seconds)


def strike(
    found: Deployed,
    victim: str,
    server: subprocess.Popen[bytes],
    nodes: list[subprocess.Popen[bytes]],
    rng: random.Random,
) -> None:
    """Kill what is to be killed, if it is there."""
    number = rng.randrange(len(nodes))
    if victim == "node":
        kill(nodes[number].pid)
        nodes[number].wait()
        nodes[number] = found.start_node(number)
    elif victim == "worker":
        for process in list(descendants(nodes[number].pid))[1:]:
            kill(process)
    elif victim == "all":
        for process in list(descendants(server.pid)):
            kill(process)
    else:
        kill(find(server.pid, MARKS[victim]))
