# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""The passes of the relaxation over all pairs, each in one go; everything scaled as in ``relaxation.py``."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sum_rows(costs, psd, slack, shares, scale, size):
    """What prices would have to take of each row, in total."""
    n = costs.shape[0]
    rows = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += (costs[i, j] - psd[i, j] - slack[i, j] - shares[i, j] / size) * scale[j]
        rows[i] = total + 1.0 / (scale[i] * size)
    return rows


@njit(cache=True, nogil=True)
def leave(costs, prices, slack, shares, scale, size, begin, end):
    """What is left for S in the block from ``begin`` to ``end``."""
    rest = np.empty((end - begin, end - begin))
    for i in range(begin, end):
        for j in range(begin, end):
            priced = 0.5 * (prices[i] * scale[j] + scale[i] * prices[j])
            rest[i - begin, j - begin] = costs[i, j] - priced - slack[i, j] - shares[i, j] / size
    return rest


@njit(cache=True, nogil=True)
def settle(costs, psd, prices, slack, shares, scale, size, k, follow):
    """The slack that fits shares of 0 to 1/k, and the shares, which follow it."""
    n = costs.shape[0]
    for i in range(n):
        for j in range(n):
            priced = 0.5 * (prices[i] * scale[j] + scale[i] * prices[j])
            rest = costs[i, j] - priced - psd[i, j] - shares[i, j] / size
            fitting = min(max(-size * rest, 0.0), 1.0 / (k * scale[i] * scale[j]))
            slack[i, j] = rest + fitting / size
            shares[i, j] += follow * (fitting - shares[i, j])


@njit(cache=True, nogil=True)
def sum_negative(costs, psd, prices, scale, k):
    """What pairs that S and the prices take too much of can take away, 1/k of each: negative, or 0."""
    n, total = costs.shape[0], 0.0
    for i in range(n):
        row = 0.0
        for j in range(n):
            priced = 0.5 * (prices[i] * scale[j] + scale[i] * prices[j])
            row += min(costs[i, j] - psd[i, j] - priced, 0.0) / scale[j]
        total += row / (k * scale[i])
    return total
