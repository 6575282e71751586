"""Speed of the search for minimal sample uniques (SUDA) beside brute force, in one run; growth with n.

Brute force is the definition, vectorised: all records are counted for every set of keys, and a set is minimal for a
record if the record is unique by it and by none of its parts. Both must find the same uniques. The table is printed
and stored in experiments/results/.
"""

from __future__ import annotations

import json
import os
import platform
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from speed import jittered_adult, show, timed

from fedanon.sdc.metrics.suda import minimal_sample_uniques

RESULTS = Path(__file__).parents[1] / "results" / "suda_speed.json"
SIZES = (12_500, 25_000, 50_000, 100_000)
#: largest table brute force is tried on
BRUTE_FORCE = 50_000
N_KEYS = 8


def adult_keys(n: int) -> NDArray[np.int64]:
    """The eight quasi-identifiers of jittered Adult: few uniques by few keys, as surveys have them."""
    codes: NDArray[np.int64] = jittered_adult(n).codes.astype(np.int64)
    return codes[:, :N_KEYS]


def random_keys(n: int) -> NDArray[np.int64]:
    """Independent keys of 30 values each: every record is unique in many ways, the hardest case."""
    return np.random.default_rng(0).integers(0, 30, size=(n, N_KEYS))


def brute_force(keys: NDArray[np.int64]) -> int:
    """Number of minimal sample uniques by the definition."""
    n_keys = keys.shape[1]
    radix = keys.max(axis=0) + 1
    unique: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    found = 0
    for size in range(1, n_keys + 1):
        for chosen in combinations(range(n_keys), size):
            combined = np.ravel_multi_index(tuple(keys[:, list(chosen)].T), tuple(radix[list(chosen)]))
            inverse, counts = np.unique(combined, return_inverse=True, return_counts=True)[1:]
            unique[chosen] = counts[inverse] == 1
            parts = [unique[part] for part in combinations(chosen, size - 1) if part]
            found += int((unique[chosen] & ~np.logical_or.reduce(parts, initial=False)).sum())
    return found


def measure(keys: NDArray[np.int64]) -> dict[str, Any]:
    """Seconds of both searches on the same keys."""
    seconds, uniques = timed(lambda: minimal_sample_uniques(keys))
    result: dict[str, Any] = {"seconds": seconds, "uniques": len(uniques.rows)}
    if len(keys) <= BRUTE_FORCE:
        result["brute_force_seconds"], expected = timed(lambda: brute_force(keys))
        assert expected == result["uniques"], "the two searches disagree"
        result["ratio"] = result["brute_force_seconds"] / seconds
    return result


def growth(name: str, runs: dict[int, dict[str, Any]]) -> float:
    """Print the runs; the exponent b of seconds ~ n^b between the smallest and the largest table."""
    rows = [
        [n, run["uniques"], run["seconds"], run.get("brute_force_seconds", ""), run.get("ratio", "")]
        for n, run in runs.items()
    ]
    show(f"SUDA, {N_KEYS} keys, {name}", ["rows", "uniques", "seconds", "brute force, s", "ratio"], rows)
    ends = [runs[n]["seconds"] for n in (min(runs), max(runs))]
    exponent = float(np.log(ends[1] / ends[0]) / np.log(max(runs) / min(runs)))
    print(f"Seconds grow as n^{exponent:.2f}.\n")
    return exponent


def main() -> None:
    """Measure both kinds of table."""
    results: dict[str, Any] = {"machine": {"python": platform.python_version(), "cpu_count": os.cpu_count()}}
    for name, make in {"jittered Adult": adult_keys, "random": random_keys}.items():
        runs = {n: measure(make(n)) for n in SIZES}
        results[name] = {"runs": {str(n): run for n, run in runs.items()}, "exponent": growth(name, runs)}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"Stored in {RESULTS.name}")


if __name__ == "__main__":
    main()
