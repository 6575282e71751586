# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""GSMS: every record proposes a group; the proposal that leaves least SSE in all is taken, step by step."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.microaggregation._neighbors import linked, nearest_in_list, unlink


@njit(cache=True)
def gsms(points, along, number, k):
    """Groups of k records; -1 for the n mod k left over. The records are sorted as the neighbour search wants them.

    Taking group G out of the m records left, whose mean is c, leaves SSE(G) + SSE(rest) = SSE(all) - k m / (m - k)
    |mean(G) - c|^2, so the proposal whose mean lies farthest from c is taken. Only the proposals that held one of its
    records are made anew.
    """
    n, p = points.shape
    labels = np.full(n, -1, dtype=np.int64)
    links = linked(n)
    near, means = np.empty((n, k - 1), dtype=np.int64), np.empty((n, p))
    distance = np.empty(k - 1)
    total = np.zeros(p)
    for i in range(n):
        _propose(points, along, number, links, i, near, means, distance)
        total += points[i]
    for group in range(n // k):
        left = n - group * k
        chosen = _farthest(means, labels, number, total / left)
        total -= k * means[chosen]
        labels[chosen] = group
        labels[near[chosen]] = group
        unlink(links[0], links[1], chosen)
        for member in near[chosen]:
            unlink(links[0], links[1], member)
        if left - k >= k:
            _propose_anew(points, along, number, links, labels, near, means, distance)
    return labels


@njit(cache=True)
def _propose(points, along, number, links, i, near, means, distance):
    """The group of record i: itself and its k - 1 nearest in the list."""
    nearest_in_list(points, along, number, links, i, near[i], distance)
    means[i] = points[i]
    for j in near[i]:
        means[i] += points[j]
    means[i] /= near.shape[1] + 1


@njit(cache=True)
def _propose_anew(points, along, number, links, labels, near, means, distance):
    for i in range(labels.shape[0]):
        if labels[i] < 0 and np.any(labels[near[i]] >= 0):
            _propose(points, along, number, links, i, near, means, distance)


@njit(cache=True)
def _farthest(means, labels, number, centre):
    best, farthest = -1.0, -1
    for i in range(means.shape[0]):
        if labels[i] >= 0:
            continue
        total = 0.0
        for c in range(centre.shape[0]):
            difference = means[i, c] - centre[c]
            total += difference * difference
        if total > best or (total == best and number[i] < number[farthest]):
            best, farthest = total, i
    return farthest
