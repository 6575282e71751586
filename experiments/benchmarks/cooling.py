"""How hot and how cold `anneal` should be, on tables its losses are not reported on: those that come with scikit-learn.

    python experiments/benchmarks/cooling.py

Prints, for every pair of first and last temperature, the mean over tables, k and seeds of the loss relative to the best
of all pairs on the same table, k and seed. `COOLING` in fedanon/anonymizers/anneal/method.py says what is used.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from fedanon.anonymizers.anneal.method import COOLING
from fedanon.anonymizers.anneal.problem import make_problem
from fedanon.anonymizers.anneal.search import Trials, run
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table

HOT, COLD = (0.15, 0.3, 0.4, 0.6), (0.015, 0.04, 0.08)
K, SEEDS, TRIALS = (3, 5, 10), 1, 600_000
COLUMNS = 8


def read_table(frame: pd.DataFrame) -> Table:
    """The first columns of a frame, all of them quasi-identifiers."""
    frame = frame.iloc[:, :COLUMNS]
    columns = (Numeric(n, Role.QUASI_IDENTIFYING, float(c.min()), float(c.max())) for n, c in frame.items())
    return Table.from_frame(frame, Schema(tuple(columns), one_row_per_person=True))


def main() -> None:
    """Print one line per objective and pair."""
    tables = [read_table(load(as_frame=True).data) for load in (load_wine, load_diabetes, load_breast_cancer)]
    pairs = list(product(HOT, COLD))
    for objective in ("sse", "ncp"):
        losses = []
        for table, k, seed in product(tables, K, range(SEEDS)):
            problem = make_problem(table, objective, k, None, np.random.default_rng(seed))  # type: ignore[arg-type]
            used = COOLING[objective]
            losses.append(
                [
                    run(problem, Trials(TRIALS), used._replace(hot=hot, cold=cold), np.random.default_rng(seed)).cost
                    for hot, cold in pairs
                ]
            )
        cost = np.array(losses)
        excess = (cost / cost.min(axis=1, keepdims=True) - 1).mean(axis=0)
        for (hot, cold), share in zip(pairs, excess, strict=True):
            mark = " <- used" if (hot, cold) == COOLING[objective][:2] else ""
            print(f"{objective}: hot {hot}, cold {cold}: {share:.2%} above the best{mark}", flush=True)


if __name__ == "__main__":
    main()
