"""Optimal groups of consecutive records: the shortest path of Hansen & Mukherjee along an order of the records."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def stretch_costs(points, order, k, closed):
    """SSE of the L records that end at each place of the order, for L = k .. 2k - 1, in column L - k.

    ``closed`` lets a stretch begin at the end of the order; otherwise such stretches cost infinity. Each is grown
    backwards with a running mean (Welford), which does not cancel as differences of cumulated squares do.
    """
    n, p = points.shape
    longest = min(2 * k - 1, n)
    costs = np.full((n, k), np.inf)
    mean = np.empty(p)
    for end in range(n):
        mean[:] = 0.0
        sse = 0.0
        for length in range(1, longest + 1):
            if end - length + 1 < 0 and not closed:
                break
            record = order[(end - length + 1) % n]
            for c in range(p):
                difference = points[record, c] - mean[c]
                mean[c] += difference / length
                sse += difference * (points[record, c] - mean[c])
            if length >= k:
                costs[end, length - k] = sse
    return costs


@njit(cache=True)
def cut(costs, first, last_length):
    """Least cost of cutting the order, begun at place ``first``, into stretches; the last length of every prefix.

    ``last_length[j]`` receives the length of the last stretch of the best cut of the first j records.
    """
    n, k = costs.shape
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    for j in range(k, n + 1):
        end = (first + j - 1) % n
        for length in range(k, min(2 * k - 1, j) + 1):
            cost = best[j - length] + costs[end, length - k]
            if cost < best[j]:
                best[j] = cost
                last_length[j] = length
    return best[n]


@njit(cache=True)
def _labels(order, first, last_length):
    n = order.shape[0]
    labels = np.empty(n, dtype=np.int64)
    j, group = n, 0
    while j > 0:
        for place in range(j - last_length[j], j):
            labels[order[(first + place) % n]] = group
        j -= last_length[j]
        group += 1
    return labels


@njit(cache=True)
def optimal_groups(points, order, k, closed):
    """Groups of consecutive records with least SSE, and that SSE; sizes k .. 2k - 1. Needs at least k records.

    An open order is cut from its first record. A closed one (a tour) has no first record: the cut may begin at any of
    2k - 1 consecutive places, and one of them begins a stretch of the best cut of the tour.
    """
    n = order.shape[0]
    costs = stretch_costs(points, order, k, closed)
    best, best_first = np.inf, 0
    last_length, kept = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    for first in range(min(2 * k - 1, n) if closed else 1):
        cost = cut(costs, first, last_length)
        if cost < best:
            best, best_first = cost, first
            kept[:] = last_length
    return _labels(order, best_first, kept), best
