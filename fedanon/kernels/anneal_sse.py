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
    if joins < 0:
        return -_from_mean(costs, group, size, leaves) * size / (size - 1.0)
    if leaves < 0:
        return _from_mean(costs, group, size, joins) * size / (size + 1.0)
    ours, _ = sse_exchange(costs, classes, group, group, leaves, joins)
    return ours


@njit(cache=True, inline="always")
def _from_mean(costs, group, size, record):
    """Squared distance of a record to the mean of a class."""
    inverse = 1.0 / size
    total = 0.0
    for c in range(costs.points.shape[1]):
        total += (costs.points[record, c] - costs.total[group, c] * inverse) ** 2
    return total


@njit(cache=True, inline="always")
def sse_exchange(costs, classes, a, b, record, other):
    r"""Both changes of a swap in one pass: with d = y - x, class a gains :math:`d (x + y - 2 \bar a) - d^2 / n_a`."""
    twice_a, twice_b = 2.0 / classes.size[a], 2.0 / classes.size[b]
    ours = theirs = between = 0.0
    for c in range(costs.points.shape[1]):
        x, y = costs.points[record, c], costs.points[other, c]
        d, both = y - x, x + y
        ours += d * (both - twice_a * costs.total[a, c])
        theirs += d * (both - twice_b * costs.total[b, c])
        between += d * d
    return ours - 0.5 * twice_a * between, -theirs - 0.5 * twice_b * between


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
