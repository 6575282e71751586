"""Tours through the records: nearest point next, and 2-opt."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.neighbors import linked, nearest_in_list, squared_distance, unlink


@njit(cache=True)
def nearest_next(points, along, number, start):
    """An order of the records: each is followed by the nearest that has not been visited (Domingo-Ferrer et al. 2006).

    The records are sorted as :mod:`fedanon.kernels.neighbors` wants them.
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
    """Shorten a closed tour in place by 2-opt moves that link a record to one of its neighbours (Bentley 1992)."""
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
