"""Nearest group of every record."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.span import span


@njit(cache=True)
def nearest_extent(spans, rows, low, high):
    """For every row the cell low[g]..high[g] with the least loss once it holds the row; the first of equals."""
    n, q = rows.shape
    nearest = np.zeros(n, dtype=np.int32)
    for i in range(n):
        best = np.inf
        for g in range(low.shape[0]):
            total = 0.0
            for c in range(q):
                x = rows[i, c]
                total += span(spans, c, min(low[g, c], x), max(high[g, c], x))
                if total >= best:
                    break
            if total < best:
                best = total
                nearest[i] = g
    return nearest


@njit(cache=True)
def joint_loss(spans, low, high, source):
    """Loss of the cell that covers ``source`` and each other cell."""
    count, q = low.shape
    loss = np.zeros(count)
    for g in range(count):
        for c in range(q):
            loss[g] += span(spans, c, min(low[g, c], low[source, c]), max(high[g, c], high[source, c]))
    return loss


@njit(cache=True)
def union_loss(spans, low, high, source, others):
    """Loss of the cell that covers ``source`` and each of ``others``."""
    loss = np.zeros(others.shape[0])
    for i in range(others.shape[0]):
        g = others[i]
        for c in range(low.shape[1]):
            loss[i] += span(spans, c, min(low[g, c], low[source, c]), max(high[g, c], high[source, c]))
    return loss
