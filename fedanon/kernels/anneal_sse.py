"""The annealer's objective for numbers: the sum of squared errors, in O(p) a change."""

# ruff: noqa: ARG001 -- the objectives share their signatures

from __future__ import annotations

from typing import Any, NamedTuple

from numba import njit


class SseCosts(NamedTuple):
    """Sum of squared distances to the class mean: ``points`` and the sum of every class."""

    points: Any
    total: Any


@njit(cache=True, inline="always")
def sse_change(costs, classes, group, leaves, joins):
    """O(p): n/(n+1) d^2 for a record that joins, -n/(n-1) d^2 for one that leaves, with d its distance to the mean."""
    size = classes.size[group]
    inverse = 1.0 / size
    gone = come = between = 0.0
    for c in range(costs.points.shape[1]):
        mean = costs.total[group, c] * inverse
        if joins < 0:
            gone += (costs.points[leaves, c] - mean) ** 2
        elif leaves < 0:
            come += (costs.points[joins, c] - mean) ** 2
        else:
            gone += (costs.points[leaves, c] - mean) ** 2
            come += (costs.points[joins, c] - mean) ** 2
            between += (costs.points[joins, c] - costs.points[leaves, c]) ** 2
    if joins < 0:
        return -gone * size / (size - 1.0)
    if leaves < 0:
        return come * size / (size + 1.0)
    return come - gone - between * inverse


@njit(cache=True)
def sse_update(costs, classes, group, leaves, joins):
    """O(p)."""
    for c in range(costs.points.shape[1]):
        if leaves >= 0:
            costs.total[group, c] -= costs.points[leaves, c]
        if joins >= 0:
            costs.total[group, c] += costs.points[joins, c]


@njit(cache=True)
def sse_recount(costs, classes, group):
    """Two passes, so that no digits are lost."""
    size = classes.size[group]
    costs.total[group] = 0.0
    for m in range(size):
        costs.total[group] += costs.points[classes.member[group, m]]
    cost = 0.0
    for m in range(size):
        for c in range(costs.points.shape[1]):
            cost += (costs.points[classes.member[group, m], c] - costs.total[group, c] / size) ** 2
    classes.cost[group] = cost


@njit(cache=True)
def sse_distances(costs, row, rows, lookup, out):
    """Squared Euclidean distances."""
    for i in range(rows.shape[0]):
        total = 0.0
        for c in range(costs.points.shape[1]):
            total += (costs.points[rows[i], c] - costs.points[row, c]) ** 2
        out[i] = total
