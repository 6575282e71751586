"""Groups of fixed size round the outermost records: MDAV, and one group a step (CBFS, robust Mahalanobis)."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.scan import drop, k_smallest


@njit(cache=True)
def _squared_distances(points, rows, count, centre, out):
    for i in range(count):
        total = 0.0
        for c in range(points.shape[1]):
            difference = points[rows[i], c] - centre[c]
            total += difference * difference
        out[i] = total


@njit(cache=True)
def _centroid(points, rows, count):
    centre = np.zeros(points.shape[1])
    for i in range(count):
        centre += points[rows[i]]
    return centre / count


@njit(cache=True)
def _take(points, rows, count, centre, k, distance, near, labels, group):
    """Give the k rows nearest ``centre`` the label ``group``; how many rows are left."""
    _squared_distances(points, rows, count, centre, distance)
    k_smallest(distance, count, k, near)
    for i in near:
        labels[rows[i]] = group
    return drop(rows, count, labels)


@njit(cache=True)
def mdav(points, k):
    """Group number of every row (Domingo-Ferrer & Torra 2005). O(n^2 p / k)."""
    n = points.shape[0]
    labels = np.full(n, -1, dtype=np.int64)
    rows = np.arange(n)
    distance, near = np.empty(n), np.empty(k, dtype=np.int64)
    left, group = n, 0
    while left >= 2 * k:
        two = left >= 3 * k
        _squared_distances(points, rows, left, _centroid(points, rows, left), distance)
        r = points[rows[np.argmax(distance[:left])]]
        if two:
            _squared_distances(points, rows, left, r, distance)
            s = points[rows[np.argmax(distance[:left])]]
        left = _take(points, rows, left, r, k, distance, near, labels, group)
        group += 1
        if two:
            left = _take(points, rows, left, s, k, distance, near, labels, group)
            group += 1
        else:
            break
    for i in range(left):
        labels[rows[i]] = group
    return labels


@njit(cache=True)
def outermost_first(points, outward, k, leave):
    """Groups of k, one a step: the record farthest from the mean of those left, and the k - 1 nearest to it.

    ``outward`` holds the coordinates in which a record is far, ``points`` those in which others are near it. Stops
    when fewer than ``leave`` records are left; these keep the label -1. O(n^2 p / k).
    """
    n = points.shape[0]
    labels = np.full(n, -1, dtype=np.int64)
    rows = np.arange(n)
    distance, near = np.empty(n), np.empty(k, dtype=np.int64)
    left, group = n, 0
    while left >= leave:
        _squared_distances(outward, rows, left, _centroid(outward, rows, left), distance)
        r = points[rows[np.argmax(distance[:left])]]
        left = _take(points, rows, left, r, k, distance, near, labels, group)
        group += 1
    return labels
