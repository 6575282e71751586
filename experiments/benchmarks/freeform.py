# ruff: noqa: NPY002, SIM110 (compiled code)
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""What cells beyond classes could gain, and what they give away: k-regular ('freeform') generalization of Adult.

Every row has a cell of its own that holds k records, and every record lies in the cells of k rows; which of its k rows
is a record's is drawn. Loss is compared with that of the partition the search starts from, and both are attacked by
somebody who knows the rows of some of the people (docs/explanation/beyond_partitions.md).

    .venv/bin/python experiments/benchmarks/freeform.py
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from fedanon.anonymizers import Anneal
from fedanon.data.groups import Groups
from fedanon.data.spans import points, span_table
from fedanon.data.table import Table
from fedanon.datasets import DATASETS
from fedanon.kernels.spans import extent_loss, span
from fedanon.types import BoolArray, FloatArray, IntArray

RESULT = Path(__file__).parents[1] / "results" / "freeform.json"
ROWS, SENSITIVE = 2400, "income"
#: of the partition, and as many again of what starts from it
TRIALS = 40_000_000
#: first and last temperature, in units of the mean loss of a cell over k
HOT, COLD = 0.25, 0.025
NEAR = 4
KNOWN = (0.0, 0.25, 0.5, 0.75)


# ---- Search: rows swap one of their k records, which keeps every record in k rows ----------------


@njit(cache=True)
def loss_with(spans, records, members, row, slot, record):
    """Loss of a row's cell if ``record`` stood in one of its slots."""
    total = 0.0
    for c in range(records.shape[1]):
        low = high = records[record, c]
        for t in range(members.shape[1]):
            if t != slot:
                low, high = min(low, records[members[row, t], c]), max(high, records[members[row, t], c])
        total += span(spans, c, low, high)
    return total


@njit(cache=True)
def holds(members, row, record):
    """Whether a record is among those of a row."""
    for t in range(members.shape[1]):
        if members[row, t] == record:
            return True
    return False


@njit(cache=True)
def anneal_rows(spans, records, members, rows_of, slots_of, near, trials, hot, cold, seed):
    """Improve ``members`` in place; ``rows_of`` and ``slots_of`` say where each record stands. Returns the losses."""
    np.random.seed(seed)
    n, k = members.shape
    loss = np.array([loss_with(spans, records, members, row, 0, members[row, 0]) for row in range(n)])
    scale = loss.mean() / k
    for trial in range(trials):
        i, a = np.random.randint(n), np.random.randint(k)
        p = members[i, a]
        q = near[members[i, np.random.randint(k)], np.random.randint(near.shape[1])]
        if q == p or holds(members, i, q):
            continue
        u = np.random.randint(k)
        j, b = rows_of[q, u], slots_of[q, u]
        if holds(members, j, p):
            continue
        worst = -hot * (cold / hot) ** (trial / trials) * scale * np.log(np.random.random())
        first = loss_with(spans, records, members, i, a, q)
        if first - loss[i] - loss[j] > worst:
            continue
        second = loss_with(spans, records, members, j, b, p)
        if first + second - loss[i] - loss[j] > worst:
            continue
        v = 0
        while rows_of[p, v] != i or slots_of[p, v] != a:
            v += 1
        members[i, a], members[j, b] = q, p
        rows_of[q, u], slots_of[q, u] = i, a
        rows_of[p, v], slots_of[p, v] = j, b
        loss[i], loss[j] = first, second
    return loss


@njit(cache=True)
def nearest(spans, records, count):
    """The nearest records of every record, itself apart."""
    n, q = records.shape
    found = np.empty((n, count), dtype=np.int32)
    apart = np.empty(n)
    for i in range(n):
        apart[:] = 0.0
        for c in range(q):
            x = records[i, c]
            for j in range(n):
                apart[j] += span(spans, c, min(x, records[j, c]), max(x, records[j, c]))
        apart[i] = np.inf
        found[i] = np.argsort(apart)[:count]
    return found


def ring_rows(classes: Groups, k: int) -> IntArray:
    """The k records of every row where each class is a ring: the start, which loses no more than the classes."""
    members = np.empty((len(classes.labels), k), dtype=np.int32)
    for label in range(classes.count):
        ring = np.flatnonzero(classes.labels == label)
        members[ring] = ring[(np.arange(len(ring))[:, None] + np.arange(k)) % len(ring)]
    return members


def places(members: IntArray) -> tuple[IntArray, IntArray]:
    """In which rows and slots each record stands; every one stands in k."""
    n, k = members.shape
    if not (np.bincount(members.ravel(), minlength=n) == k).all():
        raise AssertionError("A record does not lie in the cells of k rows.")
    order = np.argsort(members.ravel(), kind="stable").reshape(n, k)
    return (order // k).astype(np.int32), (order % k).astype(np.int32)


def draw_matching(members: IntArray, rng: np.random.Generator) -> IntArray:
    """The row of every record: one of k disjoint perfect matchings, so that each of its k rows has chance 1 / k.

    The matchings are taken off one by one, each found by random alternating walks (Goel, Kapralov & Khanna 2010), so
    that whoever learns one pair does not know the others by it.
    """
    n, k = members.shape
    left = [list(row) for row in members]
    chosen = int(rng.integers(k))
    row_of = np.full(n, -1)
    for _ in range(chosen + 1):
        row_of, record_of = np.full(n, -1), np.full(n, -1)
        for start in rng.permutation(n):
            row = int(start)
            walk: list[tuple[int, int]] = []
            while row >= 0:
                record = left[row][int(rng.integers(len(left[row])))]
                if record_of[row] == record:
                    continue  # the pair it has; the walk takes another
                walk.append((row, record))
                row = int(row_of[record])
            _take(walk, row_of, record_of)
        for record, row in enumerate(row_of):
            left[row].remove(record)
    return row_of


def _take(walk: list[tuple[int, int]], row_of: IntArray, record_of: IntArray) -> None:
    """Enter the pairs of a walk that are left once its loops are cut out: the last choice of each row counts."""
    last = dict(walk)
    row = walk[0][0]
    while True:
        record = last[row]
        following = int(row_of[record])
        row_of[record], record_of[row] = row, record
        if following < 0 or following == row:
            return
        row = following


# ---- Attack: rule out what no assignment of rows to people allows --------------------------------


def fits(records: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    """Whether each record (first axis) lies in the cell of each row (second axis)."""
    inside = np.ones((len(records), len(low)), dtype=bool)
    for c in range(records.shape[1]):
        inside &= (records[:, c, None] >= low[:, c]) & (records[:, c, None] <= high[:, c])
    return inside


def certain_after(fit: BoolArray, values: IntArray, known: BoolArray) -> tuple[float, float]:
    """Share of the unknown people whose row, and whose sensitive value, is certain.

    ``fit[p, r]``: person p may have the row of person r. A pair belongs to a perfect matching of the rest if and only
    if both are in one strongly connected component of who fits whose row.
    """
    unknown = np.flatnonzero(~known)
    rest = fit[np.ix_(unknown, unknown)]
    parts = connected_components(csr_array(rest), connection="strong")[1]
    possible = rest & (parts[:, None] == parts)
    rows = possible.sum(axis=1)
    shown = values[unknown]
    others = (possible & (shown[:, None] != shown)).any(axis=1)
    return float((rows == 1).mean()), float((~others).mean())


def attack(fit: BoolArray, values: IntArray, rng: np.random.Generator) -> dict[str, Any]:
    """What is certain to whoever knows the rows of a share of the people."""
    shares = {}
    for share in KNOWN:
        row, value = certain_after(fit, values, rng.random(len(fit)) < share)
        shares[f"{share:g}"] = {"row": round(row, 4), "value": round(value, 4)}
    return shares


# ---- The study -----------------------------------------------------------------------------------


def bounds_of(records: FloatArray, members: IntArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the cells of all rows, as positions."""
    return records[members].min(axis=1), records[members].max(axis=1)


def study(table: Table, k: int, seed: int) -> dict[str, Any]:
    """A partition, and a freeform release whose search starts from it, both attacked."""
    rng = np.random.default_rng(seed)
    records, spans = points(table), span_table(table.columns)
    values = np.unique(table.frame[SENSITIVE].to_numpy(str), return_inverse=True)[1]
    n, q = records.shape
    losses, seconds, attacks = {}, {}, {}

    def note(name: str, loss: float, begun: float, fit: BoolArray) -> None:
        losses[name], seconds[name] = loss, round(time.process_time() - begun, 1)
        attacks[name] = attack(fit, values, rng)

    begun = time.process_time()
    labels, _ = Anneal(k=k, iterations=TRIALS).search(table, rng)
    classes = Groups.from_labels(labels)
    low, high = classes.minimum(records)[classes.labels], classes.maximum(records)[classes.labels]
    cost = sum(extent_loss(spans, *ends) for ends in zip(low, high, strict=True))
    note("partition", cost / n / q, begun, fits(records, low, high))

    begun = time.process_time()
    members = ring_rows(classes, k)
    near = nearest(spans, records, NEAR * k)
    loss = anneal_rows(spans, records, members, *places(members), near, TRIALS, HOT, COLD, seed)
    places(members)
    row_of = draw_matching(members, rng)
    low, high = bounds_of(records, members)
    fit = fits(records, low[row_of], high[row_of])
    if not fit.diagonal().all():
        raise AssertionError("A record does not lie in the cell of its row.")
    note("freeform", float(loss.mean()) / q, begun, fit)
    return {"k": k, "seed": seed, "ncp": losses, "cpu_seconds": seconds, "certain": attacks}


def main() -> None:
    """Three k, three seeds; written beside the other results."""
    table = DATASETS["adult"].read()
    table = table.select_rows(np.random.default_rng(0).permutation(len(table))[:ROWS])
    runs = []
    for k in (3, 5, 10):
        for seed in (0, 1, 2):
            runs.append(study(table, k, seed))
            print(json.dumps(runs[-1]), flush=True)
    RESULT.write_text(json.dumps({"rows": ROWS, "trials": TRIALS, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
