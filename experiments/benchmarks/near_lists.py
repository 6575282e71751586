"""What `anneal` gains by exact lists of near records where a table is large.

    python experiments/benchmarks/near_lists.py

50,000 records of eight numbers with heavy tails, k = 5. The same search twice: with the exact lists of the k-d tree,
and with lists from a few divisions into blocks, as before it (mixed tables still use them). CPU seconds are those of
the lists and the search; all goes to experiments/results/near_lists.json.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from cooling import COLUMNS, read_table

from fedanon.anonymizers.anneal._neighbors import local_scale, metric_blocks, offer_blocks
from fedanon.anonymizers.anneal.method import COOLING
from fedanon.anonymizers.anneal.problem import BLOCK, ROUNDS, Problem, make_problem
from fedanon.anonymizers.anneal.search import Trials, run
from fedanon.data.table import Table

STORED = Path(__file__).parents[1] / "results" / "near_lists.json"
ROWS, K = 50_000, 5
TRIALS = (10_000_000, 40_000_000, 160_000_000)


def make_table(rows: int) -> Table:
    """Records of independent log-normal numbers."""
    frame = pd.DataFrame(np.exp(np.random.default_rng(1).normal(size=(rows, COLUMNS))))
    frame.columns = [f"c{i}" for i in range(COLUMNS)]
    return read_table(frame)


def with_block_lists(problem: Problem, table: Table) -> Problem:
    """The problem with lists from a few divisions into blocks, as `neighbors` makes them of mixed records."""
    distinct, rng = table.distinct, np.random.default_rng(0)
    costs = problem.costs._replace(points=np.ascontiguousarray(problem.costs.points[problem.near.first[:-1]]))
    near = np.full(problem.near.near.shape, -1, dtype=np.int32)
    distance, lookup, rows = np.full(near.shape, np.inf), np.empty(0), np.arange(distinct.count)
    for _ in range(ROUNDS):
        ends = metric_blocks(costs, rows, BLOCK, BLOCK // 2, rng.random(1024), lookup)
        offer_blocks(costs, rows, ends, distinct.sizes > 1, near, distance, lookup)
    scale = local_scale(near, distance, distinct.sizes, K - 1)
    near = np.where(near < 0, rows[:, None].astype(np.int32), near)
    return replace(problem, near=problem.near._replace(near=near, scale=scale))


def measure(table: Table, trials: int, *, exact: bool) -> dict[str, float]:
    """Information loss in per cent, and CPU seconds."""
    began = time.process_time()
    problem = make_problem(table, "sse", K, None, np.random.default_rng(0))
    if not exact:
        began = time.process_time()
        problem = with_block_lists(problem, table)
    lists = time.process_time() - began
    found = run(problem, Trials(trials), COOLING["sse"], np.random.default_rng(0))
    return {
        "il": round(found.cost * problem.unit, 4),
        "cpu_seconds_lists": round(lists, 1),
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Measure, print, and store."""
    for exact in (True, False):
        measure(make_table(5_000), 1000, exact=exact)  # compiles the kernels
    table, found = make_table(ROWS), {}
    for trials in TRIALS:
        pair = {name: measure(table, trials, exact=name == "exact") for name in ("blocks", "exact")}
        pair["less"] = round(1 - pair["exact"]["il"] / pair["blocks"]["il"], 4)
        found[str(trials)] = pair
        print(trials, pair, flush=True)
    STORED.write_text(json.dumps({"rows": ROWS, "k": K, "trials": found}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
