"""Speed of a federation: the local engine beside a plain loop and beside Ray, XGBoost's cost per round, an edge node.

Run by `make bench`; every measurement has a process of its own. Stored in experiments/results/federation_speed.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deployed_federation
import numpy as np

RESULTS = Path(__file__).parents[1] / "results" / "federation_speed.json"


def settings(model: str, rounds: int) -> Any:
    """Adult, ten nodes, no anonymization: what is measured is the engine."""
    from fedanon.learning.settings import RunSettings

    return RunSettings(model=model, rounds=rounds, evaluate_every=rounds)


def plain_loop(rounds: int = 100) -> dict[str, Any]:
    """Ten prepared nodes, trained and averaged by a loop without Flower."""
    from fedanon.federated.sources import n_parts, node_table
    from fedanon.learning.node import Node

    chosen = settings("lr", rounds)
    nodes = [Node(node_table(chosen, i), chosen, i) for i in range(n_parts(chosen))]
    for node in nodes:
        node.data.features(1)
    parameters = nodes[0].model.initial(nodes[0].width)
    start = time.perf_counter()
    for number in range(1, rounds + 1):
        updates = [node.train(parameters, number) for node in nodes]
        weights = [update.n_examples for update in updates]
        columns = zip(*(update.parameters for update in updates), strict=True)
        parameters = [np.average(arrays, axis=0, weights=weights) for arrays in columns]
    return {"seconds": time.perf_counter() - start}


def timed_rounds() -> list[float]:
    """Seconds of every round of training from now on."""
    from fedanon.learning.rounds import Rounds

    train, times = Rounds._train, []

    def timed(rounds: Rounds, number: int) -> None:
        start = time.perf_counter()
        train(rounds, number)
        times.append(time.perf_counter() - start)

    Rounds._train = timed  # type: ignore[method-assign]
    return times


def local(model: str, rounds: int = 100) -> dict[str, Any]:
    """The rounds of the local engine, and how the cost of a round grows."""
    from fedanon.federated.client import client_app
    from fedanon.federated.engines import LocalGrid
    from fedanon.federated.server import FederatedRun

    times, chosen = timed_rounds(), settings(model, rounds)
    FederatedRun(LocalGrid(client_app(), chosen), chosen).run()
    # the first rounds prepare what later ones reuse
    early, late = np.mean(times[10:30]), np.mean(times[-20:])
    return {"seconds": float(sum(times)), "per_round_growth": float(late / early)}


def whole(engine: Any, rounds: int = 100) -> dict[str, Any]:
    """A whole run, preparation and evaluation included; and its rounds of training alone."""
    from fedanon.federated.simulation import simulate

    times = timed_rounds()
    seconds = simulate(settings("lr", rounds), engine=engine).seconds
    return {"seconds": seconds, "seconds_of_rounds": sum(times), "rounds": rounds}


def edge() -> dict[str, Any]:
    """A node that anonymises and trains LR on 3,000 rows: seconds until it is ready, memory."""
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # an edge node has none; pandas loads it where it is
    begin = time.perf_counter()
    from fedanon.federated.sources import whole_table
    from fedanon.learning.node import Node
    from fedanon.learning.settings import RunSettings

    chosen = RunSettings(method="mondrian", method_settings={"k": 10}, model="lr")
    node = Node(whole_table("adult").select_rows(np.arange(3_750)), chosen, 0)
    node.facts  # noqa: B018
    ready = time.perf_counter() - begin
    parameters = node.model.initial(node.width)
    for number in range(1, 11):
        parameters = node.train(parameters, number).parameters
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"ready_seconds": ready, "peak_mb": peak, "rows": node.facts.n_train}


TASKS: dict[str, Callable[[], dict[str, Any]]] = {
    "plain loop, LR, 100 rounds": plain_loop,
    "local engine, LR, 100 rounds": lambda: local("lr"),
    "local engine, XGBoost, 100 rounds": lambda: local("xgb"),
    "local engine, LR, 100 rounds, whole run": lambda: whole("local"),
    "Ray engine, LR, 100 rounds, whole run": lambda: whole("ray"),
    "edge node": edge,
    "one node, deployed": lambda: deployed_federation.measure(nodes=1),
    "four nodes, deployed": deployed_federation.measure,
}
#: compared with each other, so run in turns; the medians count
REPEATED = ("plain loop, LR, 100 rounds", "local engine, LR, 100 rounds")
REPEATS = 3


def child(task: str) -> dict[str, Any]:
    """Run one task in a process of its own."""
    # one thread for small matrices, as the command line sets it
    env = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    done = subprocess.run(
        [sys.executable, __file__, "--task", task], capture_output=True, text=True, check=True, env=env
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def _medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def _ratios(results: dict[str, Any]) -> dict[str, float]:
    loop, engine = (results[name] for name in REPEATED)
    here, with_ray = (results[f"{e} engine, LR, 100 rounds, whole run"] for e in ("local", "Ray"))
    return {
        "local over plain loop": engine["seconds"] / loop["seconds"],
        "Ray over local, whole run": with_ray["seconds"] / here["seconds"],
        "Ray over local, rounds": with_ray["seconds_of_rounds"] / here["seconds_of_rounds"],
    }


def main() -> None:
    """Run everything, or one task in a child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=sorted(TASKS))
    task = parser.parse_args().task
    if task:
        print(json.dumps(TASKS[task]()))
        return
    turns = [{name: child(name) for name in REPEATED} for _ in range(REPEATS)]
    results: dict[str, Any] = {name: _medians([turn[name] for turn in turns]) for name in REPEATED}
    results |= {name: child(name) for name in TASKS if name not in REPEATED}
    for name, found in results.items():
        print(f"{name}: {', '.join(f'{key} {value:.3g}' for key, value in found.items())}")
    results["ratios"] = _ratios(results)
    print("; ".join(f"{name}: {ratio:.2f}" for name, ratio in results["ratios"].items()))
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
