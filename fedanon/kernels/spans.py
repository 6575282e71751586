# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Span of a cell and enlargement of a group, the inner loops of everything that computes loss."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def span(spans, column, low, high):
    """Loss of the smallest cell of ``column`` that covers the positions low..high."""
    scale = spans.scale[column]
    if scale > 0.0:
        return min((high - low) * scale, spans.cap)
    first = int(low)
    length = int(high) - first
    if length == 0:
        return 0.0
    level = 0
    while (2 << level) <= length:
        level += 1
    row = spans.offset[column] + level * spans.width[column]
    return max(spans.maxima[row + first], spans.maxima[row + first + length - (1 << level)])


@njit(cache=True)
def extent_loss(spans, low, high):
    """Sum of the spans of all columns of the cell low..high."""
    total = 0.0
    for c in range(low.shape[0]):
        total += span(spans, c, low[c], high[c])
    return total


# ---- Nearest group of every record ---------------------------------------------------------------


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
