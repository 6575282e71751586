# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""The best prices for a pool of groups, nearly: ascent by coverage, in place of a linear program."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def ascend(members, cost, counts, scale, prices, steps, first, last):
    """Raise the sum over the records of price + least reduced cost per member among the groups that hold the record.

    That sum is concave in the prices, and a record's slope is 1 minus the share of the records' choices that cover it:
    too little covered, and its price rises. Equal records have one price and count ``counts`` times. Steps are relative
    to the prices and shrink from ``first`` to ``last``. Returns the mean over the last 30 % of the steps of prices that
    no group of the pool undercuts, and the best sum.
    """
    k, n = members.shape[1], prices.shape[0]
    prices = prices.copy()
    reduced, choice = np.empty(n), np.zeros(n, np.int64)
    slope, covered, mean = np.zeros(n), np.empty(n), np.zeros(n)
    kept, best = 0, -np.inf
    for step in range(steps):
        reduced[:] = np.inf
        for j in range(members.shape[0]):
            per_member = cost[j]
            for i in members[j]:
                per_member -= prices[i]
            per_member /= k
            for i in members[j]:
                if per_member < reduced[i]:
                    reduced[i], choice[i] = per_member, j
        covered[:] = 0.0
        for i in range(n):
            for other in members[choice[i]]:
                covered[other] += counts[i] / k
        total = 0.0
        for i in range(n):
            total += counts[i] * (prices[i] + reduced[i])
        best = max(best, total)
        if step >= 0.7 * steps:
            mean += prices + reduced
            kept += 1
        pace = first * (last / first) ** (step / steps)
        for i in range(n):
            slope[i] = 0.5 * slope[i] + 0.5 * max(
                1.0 - covered[i] / counts[i], -1.0
            )  # many equal records may choose one
            prices[i] += pace * slope[i] * max(scale[i], abs(prices[i]))
    return mean / kept, best


@njit(cache=True, nogil=True)
def shortfall(low, counts, k):
    """The most that reduced costs can take away from the sum of prices.

    ``low``, negative, is the least reduced cost of the groups with each root, records sorted by price. Groups of k
    cover every record once, so a root counts at most as often as it occurs, and roots among the first p records need
    all their members among these: at most p / k of them. The constraints are nested, so the largest are taken greedily.
    """
    order = np.argsort(low)
    room = np.cumsum(counts) / k  # what may still be taken among the first p records
    total = 0.0
    for root in order:
        if low[root] >= 0.0:
            break
        most = min(float(counts[root]), room[root:].min())
        if most > 0.0:
            room[root:] -= most
            total -= most * low[root]
    return total
