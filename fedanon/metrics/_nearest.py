# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Whether a record's own original is among the nearest: originals are searched outwards along one column.

Nobody else's original matters once enough are nearer than one's own, and none matters that is farther away in one
column than one's own is in all. So few of them are looked at, however large the noise is: little noise leaves few
originals within reach, and much noise soon meets one that is nearer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: relative difference of squared distances below which two are tied
SLACK = 1e-9


@njit(cache=True)
def count_nearer(x, weight, known, y, own, gap, most):
    """Count, for every record, the originals nearer than its own, up to ``most``, and those as near (own included).

    Parameters
    ----------
    x : the distinct originals, sorted by the first column; those that lack it come last.
    weight : number of rows equal to each.
    known : how many of them have a value in the first column.
    y : the released records.
    own : place of every record's own original.
    gap : squared distance in each column where one of two values is missing.
    most : as many nearer ones settle the matter.
    """
    nearer, tied = np.zeros(len(y), np.int64), np.zeros(len(y), np.int64)
    for r in range(len(y)):
        least = _distance(x[own[r]], y[r], gap, np.inf)
        limit = least * (1.0 + SLACK) + 1e-15
        first = y[r, 0]
        low = np.searchsorted(x[:known, 0], first) - 1
        high = low + 1
        if first != first:
            low, high = -1, 0
        while nearer[r] < most and (low >= 0 or high < known):
            down = first - x[low, 0] if low >= 0 else np.inf
            up = x[high, 0] - first if high < known else np.inf
            if first != first:
                down, up = np.inf, np.sqrt(gap[0])
            if min(down, up) ** 2 > limit:
                break
            at = low if down <= up else high
            if down <= up:
                low -= 1
            else:
                high += 1
            _judge(_distance(x[at], y[r], gap, limit), least, limit, weight[at], nearer, tied, r)
        if first != first or gap[0] <= limit:
            for at in range(known, len(x)):
                if nearer[r] >= most:
                    break
                _judge(_distance(x[at], y[r], gap, limit), least, limit, weight[at], nearer, tied, r)
    return nearer, tied


@njit(cache=True, inline="always")
def _distance(a, b, gap, limit):
    """Squared distance, given up beyond ``limit``; missing is at distance 0 from missing."""
    total = 0.0
    for c in range(len(a)):
        difference = a[c] - b[c]
        if difference == difference:
            total += difference * difference
        elif a[c] == a[c] or b[c] == b[c]:
            total += gap[c]
        if total > limit:
            break
    return total


@njit(cache=True, inline="always")
def _judge(distance, least, limit, weight, nearer, tied, r):
    if distance * (1.0 + SLACK) + 1e-15 < least:
        nearer[r] += weight
    elif distance <= limit:
        tied[r] += weight


@njit(cache=True)
def has_neighbor(points, rows, reach):
    """Say for some rows whether another one is within ``reach``; ``points`` are sorted by their first column."""
    found = np.zeros(len(rows), np.bool_)
    for i in range(len(rows)):
        row = rows[i]
        for step in (-1, 1):
            at = row + step
            while not found[i] and 0 <= at < len(points) and abs(points[at, 0] - points[row, 0]) <= reach:
                total = 0.0
                for c in range(points.shape[1]):
                    total += (points[at, c] - points[row, c]) ** 2
                found[i] = total <= reach * reach
                at += step
    return found
