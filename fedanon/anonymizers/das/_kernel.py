# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Exact one-dimensional k-means by dynamic programming."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _cost(sums, squares, i, j):
    """Squared distances of the sorted values i..j-1 to their mean."""
    total = sums[j] - sums[i]
    return max(squares[j] - squares[i] - total * total / (j - i), 0.0)


@njit(cache=True)
def distortions(values, stop_slope):
    """Least distortion of the sorted ``values`` in 1, 2, ... groups.

    Stops once one more group gains at most ``stop_slope`` (the curve is convex, so no later group gains more). The
    best split points of a row grow with its end, so each row is solved by divide and conquer: O(m log m) a group.
    """
    m = values.shape[0]
    centred = values - np.mean(values)
    sums, squares = np.zeros(m + 1), np.zeros(m + 1)
    sums[1:] = np.cumsum(centred)
    squares[1:] = np.cumsum(centred * centred)
    result = np.empty(m)
    before, now = np.empty(m + 1), np.empty(m + 1)
    for j in range(1, m + 1):
        before[j] = _cost(sums, squares, 0, j)
    result[0] = before[m]
    stack = np.empty((2 * m + 64, 4), dtype=np.int64)
    for groups in range(2, m + 1):
        depth = 1
        stack[0] = np.array([groups, m, groups - 1, m - 1])
        while depth > 0:
            depth -= 1
            low, high, first, last = stack[depth]
            if low > high:
                continue
            end = (low + high) // 2
            best, at = np.inf, first
            for split in range(max(first, groups - 1), min(last, end - 1) + 1):
                cost = before[split] + _cost(sums, squares, split, end)
                if cost < best:
                    best, at = cost, split
            now[end] = best
            stack[depth] = np.array([low, end - 1, first, at])
            stack[depth + 1] = np.array([end + 1, high, at, last])
            depth += 2
        result[groups - 1] = now[m]
        if groups > 2 and result[groups - 2] - result[groups - 1] <= stop_slope:
            return result[:groups]
        before, now = now, before
    return result
