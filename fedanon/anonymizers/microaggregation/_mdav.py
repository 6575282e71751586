# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Groups taken one after the other: around the outermost records (MDAV, V-MDAV, CBFS, robust Mahalanobis), or GSMS."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.microaggregation._neighbors import linked, nearest_in_list, squared_distance, unlink
from fedanon.kernels.scan import drop, k_smallest


@njit(cache=True)
def _squared_distances(points, rows, count, center, out):
    for i in range(count):
        total = 0.0
        for c in range(points.shape[1]):
            difference = points[rows[i], c] - center[c]
            total += difference * difference
        out[i] = total


@njit(cache=True)
def _centroid(points, rows, count):
    center = np.zeros(points.shape[1])
    for i in range(count):
        center += points[rows[i]]
    return center / count


@njit(cache=True)
def _take(points, rows, count, center, k, distance, near, labels, group):
    """Give the k rows nearest ``center`` the label ``group``; how many rows are left."""
    _squared_distances(points, rows, count, center, distance)
    k_smallest(distance, count, k, near)
    for i in near:
        labels[rows[i]] = group
    return drop(rows, count, labels)


@njit(cache=True)
def mdav(points, k, pairs_from=3):
    """Group number of every row (Domingo-Ferrer & Torra 2005). O(n^2 p / k).

    Two groups per step while ``pairs_from`` k records are left, else one, while 2k are; k or more left over are the
    last group, and fewer, which pairs from 2k leave, keep the label -1.
    """
    n = points.shape[0]
    labels = np.full(n, -1, dtype=np.int64)
    rows = np.arange(n)
    distance, near = np.empty(n), np.empty(k, dtype=np.int64)
    left, group = n, 0
    while left >= 2 * k:
        two = left >= pairs_from * k
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
    if left >= k or group == 0:
        labels[rows[:left]] = group
    return labels


@njit(cache=True)
def join_running_means(points, labels):
    """Records without a group join, one by one, the group whose mean, with those that joined before, is nearest."""
    count = labels.max() + 1
    sizes, sums = np.zeros(count), np.zeros((count, points.shape[1]))
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            sizes[labels[i]] += 1
            sums[labels[i]] += points[i]
    for i in range(labels.shape[0]):
        if labels[i] < 0:
            best, nearest = np.inf, 0
            for g in range(count):
                gap = np.square(points[i] - sums[g] / sizes[g]).sum()
                if gap < best:
                    best, nearest = gap, g
            labels[i] = nearest
            sizes[nearest] += 1
            sums[nearest] += points[i]


@njit(cache=True)
def outermost_first(points, outward, k, leave):
    """Groups of k, one per step: the record farthest from the mean of those left, and the k - 1 nearest to it.

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


# ---- V-MDAV --------------------------------------------------------------------------------------


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


# ---- GSMS: every record proposes a group; the proposal that leaves least SSE is taken, step by step -


@njit(cache=True)
def gsms(points, along, number, k):
    """Groups of k records; -1 for the n mod k left over. The records are sorted as the neighbor search wants them.

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
def _farthest(means, labels, number, center):
    best, farthest = -1.0, -1
    for i in range(means.shape[0]):
        if labels[i] >= 0:
            continue
        total = 0.0
        for c in range(center.shape[0]):
            difference = means[i, c] - center[c]
            total += difference * difference
        if total > best or (total == best and number[i] < number[farthest]):
            best, farthest = total, i
    return farthest
