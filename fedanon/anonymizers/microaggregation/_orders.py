# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Optimal groups of consecutive records: the shortest path of Hansen & Mukherjee along an order of the records."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.microaggregation._neighbors import linked, nearest_in_list, squared_distance, unlink


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


# ---- Tours through the records: nearest point next, and 2-opt ------------------------------------


@njit(cache=True)
def nearest_next(points, along, number, start):
    """An order of the records: each is followed by the nearest that has not been visited (Domingo-Ferrer et al. 2006).

    The records are sorted as :mod:`fedanon.anonymizers.microaggregation._neighbors` wants them.
    """
    n = points.shape[0]
    order = np.empty(n, dtype=np.int64)
    links = linked(n)
    near, distance = np.empty(1, dtype=np.int64), np.empty(1)
    at = start
    for t in range(n):
        order[t] = at
        unlink(links[0], links[1], at)
        nearest_in_list(points, along, number, links, at, near, distance)
        at = near[0]
    return order


@njit(cache=True)
def two_opt(points, tour, neighbors, passes):
    """Shorten a closed tour in place by 2-opt moves that link a record to one of its neighbors (Bentley 1992)."""
    n = tour.shape[0]
    position = np.empty(n, dtype=np.int64)
    position[tour] = np.arange(n)
    for _ in range(passes):
        improved = False
        for record in range(n):
            for step in (1, -1):
                if _improve(points, tour, position, neighbors, record, step):
                    improved = True
        if not improved:
            break


@njit(cache=True)
def _improve(points, tour, position, neighbors, record, step):
    """Replace the edge from ``record`` to its successor (step 1) or predecessor (-1) by a shorter pair of edges."""
    n = tour.shape[0]
    at = position[record]
    follower = tour[(at + step) % n]
    old = np.sqrt(squared_distance(points, record, follower))
    for near in neighbors[record]:
        link = np.sqrt(squared_distance(points, record, near))
        if link >= old:
            return False
        other = tour[(position[near] + step) % n]
        change = link + np.sqrt(squared_distance(points, follower, other))
        change -= old + np.sqrt(squared_distance(points, near, other))
        if change < -1e-10:
            if step == 1:
                _reverse(tour, position, position[follower], position[near])
            else:
                _reverse(tour, position, at, position[other])
            return True
    return False


@njit(cache=True)
def _reverse(tour, position, first, last):
    """Reverse the cyclic stretch first..last, or what is outside it if that is shorter: the same tour."""
    n = tour.shape[0]
    length = (last - first) % n + 1
    if 2 * length > n:
        first, last, length = (last + 1) % n, (first - 1) % n, n - length
    for _ in range(length // 2):
        tour[first], tour[last] = tour[last], tour[first]
        position[tour[first]], position[tour[last]] = first, last
        first, last = (first + 1) % n, (last - 1) % n
