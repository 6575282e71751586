"""Speed and memory of the anonymizers, each measured in a process of its own; `make bench` runs it.

Sections: the whole of Adult at k=5 beside anonypy's Mondrian; growth with n up to one million rows; the cost of the
first use (compilation); start-up of the command line. The table is printed and stored in experiments/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable

RESULTS = Path(__file__).parents[1] / "results" / "speed.json"
K = 5
WHOLE = ("mondrian", "gfkmc", "tdg", "cb", "k_member", "oka", "wkmca")
GROWING = ("mondrian", "gfkmc", "tdg")
SIZES = (10_000, 100_000, 1_000_000)


def jittered_adult(n: int, seed: int = 0) -> Any:
    """Adult resampled to ``n`` rows: ages move by up to two years, a tenth of the other cells is drawn anew."""
    from fedanon.data.table import Table
    from fedanon.datasets import load

    adult = load("adult")
    rng = np.random.default_rng(seed)
    frame = adult.frame.iloc[rng.integers(len(adult), size=n)].reset_index(drop=True)
    for attribute in adult.schema.quasi_identifiers:
        column = frame[attribute.name]
        if attribute.name == "age":
            moved = pd.to_numeric(column) + rng.integers(-2, 3, size=n)
            frame["age"] = moved.clip(attribute.low, attribute.high)
        else:
            redrawn = column.iloc[rng.permutation(n)].reset_index(drop=True)
            frame[attribute.name] = column.where(rng.random(n) > 0.1, redrawn)
    plain = [a for a in adult.schema.attributes if a.name in frame]
    return Table.from_frame(frame, type(adult.schema)(tuple(plain), name="jittered", target=adult.schema.target))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of the second of two runs, so that compilation is not counted."""
    work()
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def task_method(name: str, n: int) -> dict[str, Any]:
    """One method on Adult (n = 0) or on jittered Adult."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.datasets import load
    from fedanon.metrics import evaluate

    table = load("adult") if n == 0 else jittered_adult(n)
    anonymizer = ANONYMIZERS[name](k=K)
    small = table.select_rows(np.arange(1000))
    anonymizer.anonymize(small, rng=0)  # compiles
    start = time.perf_counter()
    release = anonymizer.anonymize(table, rng=0)
    seconds = time.perf_counter() - start
    peak = _peak_mb()
    return {"seconds": seconds, "peak_mb": peak, "n": len(table), **evaluate(table, release, ["ncp", "k_reached"])}


def task_linkage() -> dict[str, Any]:
    """Record linkage of a Mondrian release of the whole of Adult."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.datasets import load
    from fedanon.metrics import evaluate

    table = load("adult")
    release = ANONYMIZERS["mondrian"](k=K).anonymize(table, rng=0)
    seconds, value = timed(lambda: evaluate(table, release, ["linkage_expected"]))
    return {"seconds": seconds, "peak_mb": _peak_mb(), "n": len(table), **value}


def task_anonypy() -> dict[str, Any]:
    """anonypy's Mondrian on the same rows and quasi-identifiers."""
    import anonypy

    from fedanon.datasets import load

    table = load("adult")
    names = [c.name for c in table.columns]
    frame = table.frame[[*names, "income"]].copy()
    frame["age"] = pd.to_numeric(frame["age"])
    for column in frame.columns:
        if column != "age":
            frame[column] = frame[column].astype("category")
    start = time.perf_counter()
    partitions = anonypy.mondrian.Mondrian(frame, names, "income").partition(k=K)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_mb": _peak_mb(), "n": len(table), "k_reached": min(map(len, partitions))}


def task_first_use(name: str) -> dict[str, Any]:
    """One method on Adult in a fresh process, imports and compilation included unless cached."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.datasets import load

    start = time.perf_counter()
    ANONYMIZERS[name](k=K).anonymize(load("adult"), rng=0)
    return {"seconds": time.perf_counter() - start}


TASKS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "method": task_method,
    "linkage": lambda _name, _n: task_linkage(),
    "anonypy": lambda _name, _n: task_anonypy(),
    "first_use": lambda name, _n: task_first_use(name),
}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(task: str, name: str = "", n: int = 0, **environment: str) -> dict[str, Any]:
    """Run one task in a process of its own."""
    command = [sys.executable, __file__, "--task", task, "--name", name, "--n", str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def show(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table."""
    table = RichTable(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            *(
                f"{cell:,.3f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
                for cell in row
            )
        )
    Console(width=120).print(table)


def whole_adult() -> dict[str, Any]:
    """Every method on the whole of Adult, beside anonypy."""
    results = {name: child("method", name) for name in WHOLE}
    results["linkage"] = child("linkage")
    results["anonypy"] = child("anonypy")
    rows = [[name, r["seconds"], r["peak_mb"], r.get("ncp", "")] for name, r in results.items()]
    show(f"Adult, 30,162 rows, 8 quasi-identifiers, k={K}", ["task", "seconds", "peak MB", "NCP"], rows)
    ratio = results["anonypy"]["seconds"] / results["mondrian"]["seconds"]
    print(f"Mondrian: {ratio:,.0f} times faster than anonypy's in the same run.\n")
    return {**results, "anonypy_over_mondrian": ratio}


def growth() -> dict[str, Any]:
    """Seconds for growing n; the last column compares growth with n log n."""
    results: dict[str, Any] = {}
    rows = []
    for name in GROWING:
        runs = [child("method", name, n) for n in SIZES]
        costs = [run["seconds"] for run in runs]
        unit = [cost / (n * np.log2(n)) for cost, n in zip(costs, SIZES, strict=True)]
        results[name] = {str(n): run for n, run in zip(SIZES, runs, strict=True)}
        rows.append([name, *costs, unit[-1] / unit[0], runs[-1]["peak_mb"]])
    show(
        f"Growth, jittered Adult, k={K}",
        ["method", *(f"{n:,} rows, s" for n in SIZES), "x (n log n)", "peak MB at 1M"],
        rows,
    )
    return results


def start_up() -> dict[str, Any]:
    """First use (kernels compiled), later use, and `fedanon --help`."""
    rows, results = [], {}
    for name in ("mondrian", "gfkmc", "tdg", "cb"):
        with tempfile.TemporaryDirectory() as cache:
            first = child("first_use", name, NUMBA_CACHE_DIR=cache)["seconds"]
            later = child("first_use", name, NUMBA_CACHE_DIR=cache)["seconds"]
        results[name] = {"first": first, "later": later}
        rows.append([name, first, later, first - later])
    show("Whole of Adult in a fresh process", ["method", "first use, s", "later, s", "compilation, s"], rows)
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "fedanon.cli", "--help"], capture_output=True, check=True)
    results["help"] = time.perf_counter() - begin
    print(f"fedanon --help: {results['help']:.2f} s\n")
    return results


def main() -> None:
    """Run everything, or one task in a child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=sorted(TASKS))
    parser.add_argument("--name", default="")
    parser.add_argument("--n", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(TASKS[arguments.task](arguments.name, arguments.n)))
        return
    machine = {"python": platform.python_version(), "cpu_count": os.cpu_count(), "machine": platform.machine()}
    results = {"machine": machine, "whole_adult": whole_adult(), "growth": growth(), "start_up": start_up()}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"Stored in {RESULTS.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
