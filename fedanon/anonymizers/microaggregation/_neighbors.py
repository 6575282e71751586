# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Nearest records among those still in a list, without an n x n matrix.

The records come sorted by ``along``, their coordinates on one direction of unit length, and ``below`` and ``above``
link those still in the list in that order. Two records lie at least as far apart as along the direction, so a search
that walks outward can stop as soon as the walk alone exceeds the worst distance it still wants: exact. Ties go to the
lower ``number``, so the answer does not depend on the direction.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: a walk is given up only when it is longer than the distance sought by more than rounding can explain
SLACK = 1e-9


@njit(cache=True)
def squared_distance(points, i, j):
    """Squared Euclidean distance of two records."""
    total = 0.0
    for c in range(points.shape[1]):
        difference = points[i, c] - points[j, c]
        total += difference * difference
    return total


@njit(cache=True)
def linked(n):
    """``below`` and ``above`` of a list that holds all n records; -1 and n are the ends."""
    return np.arange(-1, n - 1), np.arange(1, n + 1)


@njit(cache=True)
def unlink(below, above, i):
    """Take record i out of the list; its own links stay, so a search can still start there."""
    low, high = below[i], above[i]
    if low >= 0:
        above[low] = high
    if high < above.shape[0]:
        below[high] = low


@njit(cache=True)
def nearest_in_list(points, along, number, links, i, near, distance):
    """The records in the list nearest to record i, nearest first, into ``near``; how many were found."""
    below, above = links
    n, count = points.shape[0], near.shape[0]
    held = 0
    low, high = below[i], above[i]
    while low >= 0 or high < n:
        down = high >= n or (low >= 0 and along[i] - along[low] <= along[high] - along[i])
        j = low if down else high
        step = along[j] - along[i]
        if held == count and step * step > distance[count - 1] + SLACK * (1.0 + distance[count - 1]):
            break
        if down:
            low = below[low]
        else:
            high = above[high]
        held = _keep(near, distance, held, j, squared_distance(points, i, j), number)
    return held


@njit(cache=True)
def _keep(near, distance, held, j, d, number):
    """Insert record j at distance d into the sorted list of the nearest; how many it holds."""
    at = held
    while at > 0 and (d < distance[at - 1] or (d == distance[at - 1] and number[j] < number[near[at - 1]])):
        at -= 1
    if at == near.shape[0]:
        return held
    held = min(held + 1, near.shape[0])
    for place in range(held - 1, at, -1):
        distance[place], near[place] = distance[place - 1], near[place - 1]
    distance[at], near[at] = d, j
    return held


@njit(cache=True)
def nearest_neighbors(points, along, number, count):
    """The ``count`` < n nearest other records of every record, nearest first."""
    n = points.shape[0]
    links = linked(n)
    near, distance = np.empty((n, count), dtype=np.int64), np.empty(count)
    for i in range(n):
        nearest_in_list(points, along, number, links, i, near[i], distance)
    return near
