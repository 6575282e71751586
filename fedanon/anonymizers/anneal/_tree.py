# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Exact lists of near points from a k-d tree, for objectives whose distance is Euclidean."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.anneal._neighbors import insert

#: records per leaf; below this a scan is cheaper than a decision
LEAF = 24


@njit(cache=True)
def _build(points):
    """Nodes in preorder: rows in tree order, and for every node its rows, its children and its bounding box."""
    n, p = points.shape
    rows = np.arange(n)
    most = 4 * (n // LEAF + 1) + 1
    start, end = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    child = np.full((most, 2), -1, dtype=np.int64)
    low, high = np.empty((most, p)), np.empty((most, p))
    end[0], count = n, 1
    pending = [0]
    while len(pending) > 0:
        node = pending.pop()
        mine = rows[start[node] : end[node]]
        for c in range(p):
            low[node, c] = np.inf
            high[node, c] = -np.inf
            for row in mine:
                low[node, c] = min(low[node, c], points[row, c])
                high[node, c] = max(high[node, c], points[row, c])
        if mine.shape[0] <= LEAF:
            continue
        widest = np.argmax(high[node] - low[node])
        rows[start[node] : end[node]] = mine[np.argsort(points[mine, widest], kind="mergesort")]
        middle = (start[node] + end[node]) // 2
        for side in range(2):
            child[node, side] = count
            start[count] = start[node] if side == 0 else middle
            end[count] = middle if side == 0 else end[node]
            pending.append(count)
            count += 1
    return rows, start, end, child, low, high


@njit(cache=True)
def _gap(point, low, high):
    """Squared distance of a point to a box."""
    total = 0.0
    for c in range(point.shape[0]):
        outside = max(low[c] - point[c], point[c] - high[c], 0.0)
        total += outside * outside
    return total


@njit(cache=True)
def nearest_points(points, own, near, distance):
    """The nearest points of every point, in order, into ``near``; it is its own neighbor where ``own`` says so.

    About O(n log n) for few columns, up to O(n^2) where the columns are many and unrelated.
    """
    rows, start, end, child, low, high = _build(points)
    pending = np.empty(128, dtype=np.int64)
    for row in range(points.shape[0]):
        point, worst = points[row], near.shape[1] - 1
        pending[0], held = 0, 1
        while held > 0:
            held -= 1
            node = pending[held]
            if _gap(point, low[node], high[node]) >= distance[row, worst]:
                continue
            if child[node, 0] < 0:
                for place in range(start[node], end[node]):
                    other = rows[place]
                    gap = 0.0
                    for c in range(points.shape[1]):
                        difference = point[c] - points[other, c]
                        gap += difference * difference
                    if gap < distance[row, worst] and (other != row or own[row]):
                        insert(near[row], distance[row], other, gap)
                continue
            first, second = child[node]
            nearer_first = _gap(point, low[first], high[first]) <= _gap(point, low[second], high[second])
            pending[held] = second if nearer_first else first
            pending[held + 1] = first if nearer_first else second
            held += 2
