"""Classes worth joining with those an annealer found: the ones that cost hardly more than their prices."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fedanon.anonymizers.bounds.generation import Pricing, generate
from fedanon.anonymizers.bounds.ncp import BoxPricing
from fedanon.anonymizers.bounds.sse import SquaredErrors
from fedanon.types import IndexArray

#: classes per record at most, so that the integer program stays small
MOST = 10
#: classes per record that are also grown beyond k, and which of these are kept, as a share of the gap
GROWING, LARGER = 3, 0.1
#: passes of the exact search where no time limit is given, so that all machines find the same
PASSES = 12
#: near records of a record among which boxes are tried
NEAR = 30


def cheap_classes(problem: Any, cost: float, seconds: float | None) -> list[IndexArray]:
    """Classes whose reduced cost is below the gap between ``cost`` and the bound: of k records, and larger ones.

    A partition cheaper than ``cost`` can hold no class of a larger one, since all its reduced costs add up to less than
    the gap; those with the smallest are kept.

    Parameters
    ----------
    problem : :class:`~fedanon.anonymizers.anneal.problem.Problem`; its records are in the order of the classes.
    """
    from fedanon.anonymizers.anneal._costs import SseCosts
    from fedanon.anonymizers.bounds._boxes import near_rows

    deadline = np.inf if seconds is None else time.perf_counter() + seconds
    points, k = problem.costs.points, problem.k
    pricing: Pricing
    if isinstance(problem.costs, SseCosts):
        pricing = SquaredErrors(points, k)
    else:
        rows = np.empty((len(points), min(max(NEAR, 3 * k), len(points) - 1)), dtype=np.int64)
        near_rows(problem.near.near, problem.near.kind, problem.near.first, rows)
        pricing = BoxPricing(problem.costs, rows, k, deadline)
    found = generate(pricing, deadline, passes=PASSES if seconds is None else None)
    gap = max(cost - found.bound, 0.0)
    reduced = pricing.costs(found.members) - found.prices[found.members].sum(axis=1)
    kept = np.flatnonzero(reduced < gap)
    kept = kept[np.argsort(reduced[kept], kind="stable")][: MOST * problem.n]
    larger = []
    if isinstance(pricing, SquaredErrors):
        larger = pricing.extend(found.members[kept[: GROWING * problem.n]], found.prices, LARGER * gap)
    return [*found.members[kept], *larger]
