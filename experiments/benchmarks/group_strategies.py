"""The first study of the derivative-free paper: which way to keep groups at k, and which heuristic first.

The paper ran 216 synthetic tables, which are not at hand, at g = 3, 5 and 10. Ours are 216 mixtures of normals of
several sizes, dimensions and numbers of clusters, drawn here; numbers of groups and starts are random.

    .venv/bin/python experiments/benchmarks/group_strategies.py
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.anonymizers.microaggregation.base import standardized
from fedanon.anonymizers.microaggregation.derivative_free import Strategy, improved
from fedanon.types import FloatArray

RESULT = Path(__file__).parents[1] / "results" / "group_strategies.json"
#: records, columns, clusters, spread of the clusters, repetitions: 216 tables
SIZES, COLUMNS, CLUSTERS, SPREADS, REPEATED = (100, 200, 400), (2, 5, 10), (1, 5, 20), (0.05, 0.3), 4
GROUPS_OF = (3, 5, 10)
#: numbers of groups tried on every table
COUNTS = 3


def mixture(n: int, columns: int, clusters: int, spread: float, rng: np.random.Generator) -> FloatArray:
    """Records around random centers."""
    centers = rng.random((clusters, columns))
    return standardized(centers[rng.integers(clusters, size=n)] + spread * rng.normal(size=(n, columns)))


def compare(points: FloatArray, k: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """SSE of every way, from the same random starts."""
    n = len(points)
    counts = rng.integers(-(-n // (2 * k - 1)), n // k + 1, size=COUNTS)
    found = []
    for count in counts:
        start = rng.permutation(np.arange(n) % count)
        ways: list[tuple[Strategy, str]] = [*product(("fill", "forbid"), ("h", "k")), ("fill", "hk"), ("fill", "kh")]
        found.append(
            {f"{strategy} {order}": improved(points, start, k, strategy, order).sse for strategy, order in ways}
        )
    return found


def share(found: list[dict[str, float]], one: str, other: str) -> dict[str, Any]:
    """How often one way is better than another, and how often worse."""
    a, b = (np.array([sse[way] for sse in found]) for way in (one, other))
    return {"better": float((a < b - 1e-9).mean()), "worse": float((a > b + 1e-9).mean())}


def main() -> None:
    """All tables; the shares are printed and stored."""
    rng = np.random.default_rng(0)
    found: list[dict[str, float]] = []
    tables = list(product(SIZES, COLUMNS, CLUSTERS, SPREADS, range(REPEATED)))
    for n, columns, clusters, spread, _ in tables:
        points = mixture(n, columns, clusters, spread, rng)
        for k in GROUPS_OF:
            found += compare(points, k, rng)
    result = {
        "tables": len(tables),
        "sets": len(tables) * len(GROUPS_OF),
        "runs": len(found),
        "k-means: strategy II against I": share(found, "fill k", "forbid k"),
        "h-means: strategy II against I": share(found, "fill h", "forbid h"),
        "HM+KM against KM+HM": share(found, "fill hk", "fill kh"),
    }
    print(json.dumps(result, indent=1))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
