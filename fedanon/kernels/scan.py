# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Comparing cells with very many records: a look-up table per cell, then one pass; and which points lie in cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.spans import span


@njit(cache=True)
def fill_lookup(spans, codes, low, high, lookup):
    """For every code the loss of its column's cell low..high once it holds that code."""
    for c in range(low.shape[0]):
        for entry in range(codes.start[c], codes.start[c + 1]):
            x = codes.position[entry]
            lookup[entry] = span(spans, c, min(low[c], x), max(high[c], x))


@njit(cache=True)
def scan(lookup, flat, rows, count, out):
    """Sum of the look-ups of rows[0:count], into ``out``."""
    q = flat.shape[1]
    for i in range(count):
        row = rows[i]
        total = 0.0
        for c in range(q):
            total += lookup[flat[row, c]]
        out[i] = total


@njit(cache=True)
def k_smallest(values, count, k, out):
    """Indices of the k smallest of values[0:count] in order of (value, index), into ``out``; O(count) for small k."""
    held = 0
    for i in range(count):
        if held == k and values[i] >= values[out[k - 1]]:
            continue
        at = held if held < k else k - 1
        while at > 0 and values[out[at - 1]] > values[i]:
            out[at] = out[at - 1]
            at -= 1
        out[at] = i
        held = min(held + 1, k)


@njit(cache=True)
def point(codes, row, out):
    """The coordinates of a record, into ``out``."""
    for c in range(out.shape[0]):
        out[c] = codes.position[codes.flat[row, c]]


@njit(cache=True)
def enlarge(codes, row, low, high):
    """Enlarge the cell low..high in place to hold a record."""
    for c in range(low.shape[0]):
        x = codes.position[codes.flat[row, c]]
        low[c] = min(low[c], x)
        high[c] = max(high[c], x)


@njit(cache=True)
def drop(rows, count, labels):
    """Keep the rows that have no label yet, in order; returns how many are left."""
    left = 0
    for i in range(count):
        if labels[rows[i]] < 0:
            rows[left] = rows[i]
            left += 1
    return left


@njit(cache=True)
def join_least(spans, codes, row, low, high, sizes, count, weighted):
    """The cell among the first ``count`` that loses least by taking a record in.

    ``weighted`` compares the increase of size x loss, otherwise the loss of the enlarged cell.
    """
    best, best_cost = 0, np.inf
    q = low.shape[1]
    for g in range(count):
        after = 0.0
        before = 0.0
        for c in range(q):
            x = codes.position[codes.flat[row, c]]
            after += span(spans, c, min(low[g, c], x), max(high[g, c], x))
            if weighted:
                before += span(spans, c, low[g, c], high[g, c])
            elif after >= best_cost:
                break
        cost = (sizes[g] + 1) * after - sizes[g] * before if weighted else after
        if cost < best_cost:
            best, best_cost = g, cost
    return best


# ---- Which points lie in which cells -------------------------------------------------------------


@njit(cache=True, inline="always")
def _inside(point, low, high):
    for c in range(point.shape[0]):
        if point[c] < low[c] or point[c] > high[c]:
            return 0
    return 1


@njit(cache=True)
def points_in_cells(points, low, high):
    """Number of points in every cell low[g]..high[g], ends included. O(points x cells), mostly one comparison each."""
    counts = np.zeros(low.shape[0], dtype=np.int64)
    for g in range(low.shape[0]):
        for i in range(points.shape[0]):
            counts[g] += _inside(points[i], low[g], high[g])
    return counts


@njit(cache=True)
def shares_of_points(points, low, high, share):
    """For every point the sum and the largest of the shares of the cells it lies in; 0 in none."""
    total, largest = np.zeros(points.shape[0]), np.zeros(points.shape[0])
    for g in range(low.shape[0]):
        for i in range(points.shape[0]):
            if _inside(points[i], low[g], high[g]):
                total[i] += share[g]
                largest[i] = max(largest[i], share[g])
    return total, largest


@njit(cache=True)
def largest_in_cells(points, value, low, high):
    """The largest value of the points in every cell; 0 in an empty one."""
    largest = np.zeros(low.shape[0])
    for g in range(low.shape[0]):
        for i in range(points.shape[0]):
            if value[i] > largest[g] and _inside(points[i], low[g], high[g]):
                largest[g] = value[i]
    return largest
