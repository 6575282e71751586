# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Partitions around medoids: every record goes to the nearest, and groups below k are filled."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.microaggregation._neighbors import squared_distance


@njit(cache=True)
def assign(points, neighbors, medoids, k, labels, sizes):
    """Group of every record around the medoids, none below k, into ``labels`` and ``sizes``. Needs c * k <= n.

    A record's nearest medoid is the first in its list of neighbors; the few whose list holds none compare all.
    """
    labels[:] = -1
    sizes[:] = 1
    for group in range(medoids.shape[0]):
        labels[medoids[group]] = group
    own = labels.copy()
    for i in range(labels.shape[0]):
        if labels[i] < 0:
            labels[i] = _nearest_medoid(points, neighbors, medoids, own, i)
            sizes[labels[i]] += 1
    fill(points, neighbors, medoids, own, k, labels, sizes)


@njit(cache=True)
def _nearest_medoid(points, neighbors, medoids, own, i):
    for j in neighbors[i]:
        if own[j] >= 0:
            return own[j]
    best, nearest = np.inf, 0
    for group in range(medoids.shape[0]):
        d = squared_distance(points, i, medoids[group])
        if d < best:
            best, nearest = d, group
    return nearest


@njit(cache=True)
def fill(points, neighbors, medoids, own, k, labels, sizes):
    """Repair: a group below k takes the record nearest to its medoid out of the groups above k, until it holds k.

    Medoids stay. As c * k <= n, some group is above k as long as one is below.
    """
    for group in range(medoids.shape[0]):
        place = 0
        while sizes[group] < k:
            taken = -1
            while place < neighbors.shape[1] and taken < 0:
                j = neighbors[medoids[group], place]
                if own[j] < 0 and sizes[labels[j]] > k:
                    taken = j
                place += 1
            if taken < 0:
                taken = _nearest_spare(points, medoids[group], own, k, labels, sizes)
            sizes[labels[taken]] -= 1
            labels[taken] = group
            sizes[group] += 1


@njit(cache=True)
def _nearest_spare(points, medoid, own, k, labels, sizes):
    best, nearest = np.inf, -1
    for i in range(labels.shape[0]):
        if own[i] < 0 and sizes[labels[i]] > k:
            d = squared_distance(points, i, medoid)
            if d < best:
                best, nearest = d, i
    return nearest


@njit(cache=True, nogil=True)
def mean_distances(points, neighbors, candidates, k):
    """For every row of medoids the sum over the groups of the mean distance to the medoid (BRKGA paper, eq. 5)."""
    labels = np.empty(points.shape[0], dtype=np.int64)
    sizes = np.empty(candidates.shape[1], dtype=np.int64)
    totals = np.empty(candidates.shape[1])
    result = np.empty(candidates.shape[0])
    for row in range(candidates.shape[0]):
        medoids = candidates[row]
        assign(points, neighbors, medoids, k, labels, sizes)
        totals[:] = 0.0
        for i in range(labels.shape[0]):
            totals[labels[i]] += np.sqrt(squared_distance(points, i, medoids[labels[i]]))
        result[row] = np.sum(totals / sizes)
    return result


@njit(cache=True)
def medoid_groups(points, neighbors, medoids, k):
    """Group of every record around the medoids, none below k."""
    labels = np.empty(points.shape[0], dtype=np.int64)
    assign(points, neighbors, medoids, k, labels, np.empty(medoids.shape[0], dtype=np.int64))
    return labels
