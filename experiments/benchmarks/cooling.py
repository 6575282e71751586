"""How hot and how cold `anneal` should be, chosen on tables its losses are not reported on.

    python experiments/benchmarks/cooling.py

Three tables that come with scikit-learn and a made one. For every pair of first and last temperature, the mean over
tables, k and seeds of the loss relative to the least of all pairs on the same table, k and seed, into
experiments/results/cooling.json. `COOLING` in fedanon/anonymizers/anneal/method.py says what is used.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_blobs

from fedanon.anonymizers.anneal.method import COOLING
from fedanon.anonymizers.anneal.problem import Objective, make_problem
from fedanon.anonymizers.anneal.search import Trials, run
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table

STORED = Path(__file__).parents[1] / "results" / "cooling.json"
HOT, COLD = (0.15, 0.3, 0.4, 0.6), (0.015, 0.04, 0.08)
K, SEEDS, TRIALS_PER_RECORD = (3, 5, 10), 2, 1000
COLUMNS = 8


def read_table(frame: pd.DataFrame) -> Table:
    """The first columns of a frame, all of them quasi-identifiers."""
    frame = frame.iloc[:, :COLUMNS]
    columns = (Numeric(n, Role.QUASI_IDENTIFYING, float(c.min()), float(c.max())) for n, c in frame.items())
    return Table.from_frame(frame, Schema(tuple(columns), one_row_per_person=True))


def read_tables() -> list[Table]:
    """Wine, diabetes and breast cancer, and twelve clusters of unlike density."""
    frames = [load(as_frame=True).data for load in (load_wine, load_diabetes, load_breast_cancer)]
    made, _ = make_blobs(600, COLUMNS, centers=12, cluster_std=np.linspace(0.2, 3, 12), random_state=0)
    return [read_table(frame) for frame in (*frames, pd.DataFrame(made, columns=[f"x{i}" for i in range(COLUMNS)]))]


def compare_pairs(tables: list[Table], objective: Objective) -> dict[str, float]:
    """How far each pair of temperatures is above the best, as a mean share."""
    pairs = list(product(HOT, COLD))
    losses = []
    for table, k, seed in product(tables, K, range(SEEDS)):
        problem = make_problem(table, objective, k, None, np.random.default_rng(seed))
        settings = [COOLING[objective]._replace(hot=hot, cold=cold) for hot, cold in pairs]
        budget = TRIALS_PER_RECORD * len(table)
        losses.append([run(problem, Trials(budget), one, np.random.default_rng(seed)).cost for one in settings])
    cost = np.array(losses)
    excess = (cost / cost.min(axis=1, keepdims=True) - 1).mean(axis=0)
    return {f"{hot} to {cold}": round(float(share), 5) for (hot, cold), share in zip(pairs, excess, strict=True)}


def main() -> None:
    """Store one number per objective and pair."""
    tables = read_tables()
    objectives: tuple[Objective, Objective] = ("sse", "ncp")
    found = {objective: compare_pairs(tables, objective) for objective in objectives}
    STORED.write_text(json.dumps(found, indent=2) + "\n")
    for objective in objectives:
        hot, cold, _ = COOLING[objective]
        print(f"{objective}: best {min(found[objective], key=found[objective].__getitem__)}; used {hot} to {cold}")


if __name__ == "__main__":
    main()
