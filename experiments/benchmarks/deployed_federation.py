"""A deployed federation on this machine, by its own commands: seconds per round, CPU seconds, and the memory of a node.

A round trains and is evaluated at every node. Its seconds are read from the times at which the server's checkpoint
changes; memory is the sum over a node's processes, what they share counted once (PSS), read from /proc. Run alone, it
prints the numbers: `python experiments/benchmarks/deployed_federation.py --nodes 4`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROUNDS = 20
PATIENCE = 1_200.0


def measure(nodes: int = 4, model: str = "lr", rounds: int = ROUNDS) -> dict[str, Any]:
    """Median and largest seconds of a round; megabytes of a node while it prepares, trains and waits; load."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _hide_pyarrow(folder / "hidden")
        _make(folder / "trial", nodes, model, rounds)
        start = time.perf_counter()
        with contextlib.ExitStack() as stack:
            log = stack.enter_context((folder / "log").open("wb"))
            taking_part = [
                stack.enter_context(_running("node", "run", folder / "trial" / f"hospital-{number}", log=log))
                for number in range(nodes)
            ]
            serving = stack.enter_context(_running("server", "run", folder / "trial" / "server", log=log))
            pids = [process.pid for process in taking_part]
            times, memory, cpu = _watch(serving, pids, folder / "trial" / "server" / "checkpoints")
            if serving.wait() or len(times) < rounds:
                raise SystemExit((folder / "log").read_text(encoding="utf-8", errors="replace")[-2_000:])
        steps = [after - before for before, after in itertools.pairwise(times)]
        return {
            "nodes": nodes,
            "median_round_seconds": statistics.median(steps),
            "largest_round_seconds": max(steps),
            **{f"{who}_cpu_seconds_per_round": seconds / len(steps) for who, seconds in cpu.items()},
            "start_to_first_round_seconds": times[0] - start,
            **{f"node_{when}_mb": megabytes for when, megabytes in memory.items()},
            "load_average": os.getloadavg()[0],
        }


def _hide_pyarrow(folder: Path) -> None:
    """A node has no pyarrow; where it is installed, as for experiments, pandas loads its 60 MB."""
    folder.mkdir()
    (folder / "pyarrow.py").write_text("raise ImportError('not part of a node')\n", encoding="utf-8")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


def _make(folder: Path, nodes: int, model: str, rounds: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = _command("federation", "init", folder, "--nodes", nodes, "--port", port, "--dataset", "adult")
    subprocess.run(command, check=True, capture_output=True)
    file = folder / "server" / "server.toml"
    text = file.read_text(encoding="utf-8").replace("rounds = 10", f"rounds = {rounds}")
    file.write_text(text.replace('model = "lr"', f'model = "{model}"'), encoding="utf-8")


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "fedanon.cli", *map(str, arguments)]


@contextlib.contextmanager
def _running(*arguments: object, log: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(_command(*arguments), stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _watch(
    serving: subprocess.Popen[bytes], nodes: list[int], checkpoints: Path
) -> tuple[list[float], dict[str, float], dict[str, float]]:
    """When every round was kept, the first node's largest memory, and CPU seconds after the first round.

    The memory is that before and after the first round, and at the end.
    """
    times: list[float] = []
    peaks, seen, end = {"preparing": 0.0, "training": 0.0}, 0.0, time.monotonic() + PATIENCE
    looked, spent, who = 0.0, dict[str, list[float]](), {"server": [serving.pid], "nodes": nodes}
    while serving.poll() is None and time.monotonic() < end:
        now = time.perf_counter()
        if (changed := _changed(checkpoints)) != seen:
            seen = changed
            times.append(now)
            for name, roots in who.items():
                spent.setdefault(name, []).append(sum(_cpu_seconds(p) for root in roots for p in _family(root)))
        if now - looked > 0.1:  # a look at the memory costs the node some time too
            looked = now
            when = "training" if times else "preparing"
            peaks[when] = max(peaks[when], sum(_pss(process) for process in _family(nodes[0])))
        time.sleep(0.01)
    memory = {**peaks, "waiting": sum(_pss(process) for process in _family(nodes[0]))}
    return times, memory, {name: seconds[-1] - seconds[0] for name, seconds in spent.items()}


def _changed(checkpoints: Path) -> float:
    return max((path.stat().st_mtime for path in checkpoints.glob("*.npz")), default=0.0)


def _family(process: int) -> Iterator[int]:
    yield process
    for child in _read(process, f"task/{process}/children").split():
        yield from _family(int(child))


def _pss(process: int) -> float:
    lines = [line for line in _read(process, "smaps_rollup").splitlines() if line.startswith("Pss:")]
    return float(lines[0].split()[1]) / 1024 if lines else 0.0


def _cpu_seconds(process: int) -> float:
    """Of a process and of those it has started that have ended."""
    fields = _read(process, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _read(process: int, file: str) -> str:
    try:
        return Path(f"/proc/{process}/{file}").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended
        return ""


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--model", default="lr")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    for name, value in measure(chosen.nodes, chosen.model, chosen.rounds).items():
        print(f"{name}: {value:.3g}")


if __name__ == "__main__":
    main()
