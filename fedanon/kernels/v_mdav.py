"""V-MDAV: groups that grow beyond k while a record is nearer to the group than to the records outside."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.neighbors import squared_distance
from fedanon.kernels.scan import k_smallest


@njit(cache=True)
def v_mdav(points, outward, k, gamma):
    """Group number of every record; -1 for the fewer than k left over at the end. O(n^2 p).

    ``outward`` lists the records from the outermost inward. ``gap[i]`` is the squared distance of record i to the
    nearest member of the group being formed.
    """
    n = points.shape[0]
    labels = np.full(n, -1, dtype=np.int64)
    gap = np.empty(n)
    left, group = n, 0
    for seed in outward:
        if left < k:
            break
        if labels[seed] >= 0:
            continue
        _gather(points, labels, gap, seed, k, group)
        left -= k
        left -= _extend(points, labels, gap, k, gamma, group)
        group += 1
    return labels


@njit(cache=True)
def _join(points, labels, gap, record, group):
    labels[record] = group
    for i in range(labels.shape[0]):
        if labels[i] < 0:
            gap[i] = min(gap[i], squared_distance(points, record, i))


@njit(cache=True)
def _gather(points, labels, gap, seed, k, group):
    """The seed and the k - 1 records nearest to the seed."""
    labels[seed] = group
    free = np.flatnonzero(labels < 0)
    distance, near = np.empty(free.shape[0]), np.empty(k - 1, dtype=np.int64)
    for i in range(free.shape[0]):
        distance[i] = squared_distance(points, seed, free[i])
        gap[free[i]] = distance[i]
    k_smallest(distance, free.shape[0], k - 1, near)
    for i in near:
        _join(points, labels, gap, free[i], group)


@njit(cache=True)
def _extend(points, labels, gap, k, gamma, group):
    """Take in the nearest outsider while d_in < gamma d_out, at most k - 1 times; how many joined."""
    for joined in range(k - 1):
        record = _nearest(labels, gap)
        if record < 0 or not np.sqrt(gap[record]) < gamma * np.sqrt(_isolation(points, labels, record)):
            return joined
        _join(points, labels, gap, record, group)
    return k - 1


@njit(cache=True)
def _nearest(labels, gap):
    best = -1
    for i in range(labels.shape[0]):
        if labels[i] < 0 and (best < 0 or gap[i] < gap[best]):
            best = i
    return best


@njit(cache=True)
def _isolation(points, labels, record):
    """Squared distance of an outsider to the nearest other outsider."""
    best = np.inf
    for i in range(labels.shape[0]):
        if labels[i] < 0 and i != record:
            best = min(best, squared_distance(points, record, i))
    return best
