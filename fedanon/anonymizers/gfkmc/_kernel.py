# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Weighted k-member clustering of groups of equal records (GFKMC, WKMCA), and exact one-dimensional k-means (DAS)."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.spans import span


@njit(cache=True)
def _fill(spans, cells, low, high, lookup):
    """For every value of every column the span of low..high once it holds that value."""
    for c in range(low.shape[0]):
        for e in range(cells.start[c], cells.start[c + 1]):
            lookup[e] = span(spans, c, min(low[c], cells.low[e]), max(high[c], cells.high[e]))


@njit(cache=True)
def _grow(cells, group, low, high):
    for c in range(low.shape[0]):
        e = cells.flat[group, c]
        low[c] = min(low[c], cells.low[e])
        high[c] = max(high[c], cells.high[e])


@njit(cache=True)
def _distances(spans, cells, seed, groups, count, weight, lookup, out):
    """Weighted distance of each group's record to the seed's: sqrt(W1^2 + W2^2) d, equal values at distance 0."""
    q = cells.flat.shape[1]
    for c in range(q):
        s = cells.flat[seed, c]
        for e in range(cells.start[c], cells.start[c + 1]):
            lookup[e] = span(spans, c, min(cells.low[s], cells.low[e]), max(cells.high[s], cells.high[e]))
        lookup[s] = 0.0
    for i in range(count):
        g = groups[i]
        total = 0.0
        for c in range(q):
            total += lookup[cells.flat[g, c]]
        out[i] = np.sqrt(weight[seed] ** 2 + weight[g] ** 2) * total


@njit(cache=True)
def _increases(cells, groups, count, remaining, weight, lookup, size, squares, room, out):
    """WIL of the cluster once it holds each group (as much of it as there is room for)."""
    q = cells.flat.shape[1]
    for i in range(count):
        g = groups[i]
        loss = 0.0
        for c in range(q):
            loss += lookup[cells.flat[g, c]]
        taken = min(remaining[g], room)
        out[i] = np.sqrt(squares + taken * weight[g] ** 2) * (size + taken) * loss


@njit(cache=True)
def _compact(groups, count, remaining):
    left = 0
    for i in range(count):
        if remaining[groups[i]] > 0:
            groups[left] = groups[i]
            left += 1
    return left


@njit(cache=True)
def weighted_clusters(distance, loss, cells, remaining, weight, inliers, outliers, k, first, max_max, once, truncate):
    """Clusters of exactly k records from ``inliers``, then every left-over joins the cluster with least WIL increase.

    Parameters
    ----------
    distance, loss : span tables of the record distance and of the information loss.
    cells : values of the groups. remaining : records in each group, used up. weight : of one record of each group.
    inliers, outliers : group numbers. first : position of the first seed in ``inliers``.
    max_max : the next seed has the largest distance to any cluster, else the largest to its nearest.
    once : candidates are ordered once against the seed (one record each), else anew after every step.
    truncate : distances to all but the newest seed are cut to integers, as the thesis's code does.

    Returns
    -------
    group, cluster and count of every assignment, and the seed group of every cluster. O(clusters x groups x q).
    """
    q = cells.flat.shape[1]
    total = np.sum(remaining[inliers])
    clusters = total // k
    low, high = np.empty((clusters, q)), np.empty((clusters, q))
    sizes, squares = np.zeros(clusters, dtype=np.int64), np.zeros(clusters)
    seeds = np.empty(clusters, dtype=np.int64)
    moves = np.empty((remaining.shape[0] + clusters * 2, 3), dtype=np.int64)
    lookup, score = np.empty(cells.low.shape[0]), np.empty(remaining.shape[0])
    far = np.full(remaining.shape[0], -1.0 if max_max else np.inf)
    newest = far.copy()
    groups = inliers.copy()
    count, moved = groups.shape[0], 0
    for cluster in range(clusters):
        at = first
        if cluster > 0:
            _distances(distance, cells, seeds[cluster - 1], groups, count, weight, lookup, score)
            at = _next_seed(groups, count, score, far, newest, max_max, truncate)
        seed = groups[at]
        seeds[cluster] = seed
        for c in range(q):
            low[cluster, c] = cells.low[cells.flat[seed, c]]
            high[cluster, c] = cells.high[cells.flat[seed, c]]
        moved = _take(moves, moved, seed, cluster, min(remaining[seed], k), remaining, sizes, squares, weight)
        count = _compact(groups, count, remaining)
        if once:
            _fill(loss, cells, low[cluster], high[cluster], lookup)
            _increases(cells, groups, count, remaining, weight, lookup, sizes[cluster], squares[cluster], 1, score)
            for i in np.argsort(score[:count], kind="mergesort"):
                if sizes[cluster] >= k:
                    break
                g = groups[i]
                room = min(remaining[g], k - sizes[cluster])
                moved = _take(moves, moved, g, cluster, room, remaining, sizes, squares, weight)
                _grow(cells, g, low[cluster], high[cluster])
        while sizes[cluster] < k:
            room = k - sizes[cluster]
            _fill(loss, cells, low[cluster], high[cluster], lookup)
            _increases(cells, groups, count, remaining, weight, lookup, sizes[cluster], squares[cluster], room, score)
            g = groups[np.argmin(score[:count])]
            room = min(remaining[g], room)
            moved = _take(moves, moved, g, cluster, room, remaining, sizes, squares, weight)
            _grow(cells, g, low[cluster], high[cluster])
            count = _compact(groups, count, remaining)
        count = _compact(groups, count, remaining)
    for g in np.concatenate((groups[:count], outliers)):
        best = _least_increase(loss, cells, g, remaining[g], weight[g], low, high, sizes, squares)
        moved = _take(moves, moved, g, best, remaining[g], remaining, sizes, squares, weight)
        _grow(cells, g, low[best], high[best])
    return moves[:moved], seeds


@njit(cache=True)
def _take(moves, moved, group, cluster, amount, remaining, sizes, squares, weight):
    moves[moved, 0] = group
    moves[moved, 1] = cluster
    moves[moved, 2] = amount
    remaining[group] -= amount
    sizes[cluster] += amount
    squares[cluster] += amount * weight[group] ** 2
    return moved + 1


@njit(cache=True)
def _next_seed(groups, count, score, far, newest, max_max, truncate):
    """Position of the group farthest from the clusters; ``score`` holds the distances to the newest seed."""
    best, best_value = 0, -np.inf
    for i in range(count):
        g = groups[i]
        if max_max:
            settled = np.floor(newest[g]) if truncate and newest[g] >= 0.0 else newest[g]
            far[g] = max(far[g], settled)
            newest[g] = score[i]
            value = max(far[g], score[i])
        else:
            far[g] = min(far[g], score[i])
            value = far[g]
        if value > best_value:
            best, best_value = i, value
    return best


@njit(cache=True)
def _least_increase(loss, cells, group, amount, weight, low, high, sizes, squares):
    """The cluster whose WIL grows least by the records of a group."""
    best, best_cost = 0, np.inf
    added = amount * weight**2
    for k in range(low.shape[0]):
        before, after = 0.0, 0.0
        for c in range(low.shape[1]):
            e = cells.flat[group, c]
            before += span(loss, c, low[k, c], high[k, c])
            after += span(loss, c, min(low[k, c], cells.low[e]), max(high[k, c], cells.high[e]))
        cost = np.sqrt(squares[k] + added) * (sizes[k] + amount) * after - np.sqrt(squares[k]) * sizes[k] * before
        if cost < best_cost:
            best, best_cost = k, cost
    return best


# ---- Exact one-dimensional k-means by dynamic programming ----------------------------------------


@njit(cache=True)
def _cost(sums, squares, i, j):
    """Squared distances of the sorted values i..j-1 to their mean."""
    total = sums[j] - sums[i]
    return max(squares[j] - squares[i] - total * total / (j - i), 0.0)


@njit(cache=True)
def distortions(values, stop_slope):
    """Least distortion of the sorted ``values`` in 1, 2, ... groups.

    Stops once one more group gains at most ``stop_slope`` (the curve is convex, so no later group gains more). The
    best split points of a row grow with its end, so each row is solved by divide and conquer: O(m log m) per group.
    """
    m = values.shape[0]
    centered = values - np.mean(values)
    sums, squares = np.zeros(m + 1), np.zeros(m + 1)
    sums[1:] = np.cumsum(centered)
    squares[1:] = np.cumsum(centered * centered)
    result = np.empty(m)
    before, now = np.empty(m + 1), np.empty(m + 1)
    for j in range(1, m + 1):
        before[j] = _cost(sums, squares, 0, j)
    result[0] = before[m]
    stack = np.empty((2 * m + 64, 4), dtype=np.int64)
    for groups in range(2, m + 1):
        depth = 1
        stack[0] = np.array([groups, m, groups - 1, m - 1])
        while depth > 0:
            depth -= 1
            low, high, first, last = stack[depth]
            if low > high:
                continue
            end = (low + high) // 2
            best, at = np.inf, first
            for split in range(max(first, groups - 1), min(last, end - 1) + 1):
                cost = before[split] + _cost(sums, squares, split, end)
                if cost < best:
                    best, at = cost, split
            now[end] = best
            stack[depth] = np.array([low, end - 1, first, at])
            stack[depth + 1] = np.array([end + 1, high, at, last])
            depth += 2
        result[groups - 1] = now[m]
        if groups > 2 and result[groups - 2] - result[groups - 1] <= stop_slope:
            return result[:groups]
        before, now = now, before
    return result
