# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Which points lie in which cells: how many people of a population a published cell could be about."""

from __future__ import annotations

import numpy as np
from numba import njit


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
