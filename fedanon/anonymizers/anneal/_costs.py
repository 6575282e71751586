# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""What a class costs, for the annealer: two objectives behind five functions.

An objective is a NamedTuple of arrays, the records and an aggregate of every class. The functions below are replaced by
those of its type when the search is compiled, so the search is written once and pays for no indirection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from fedanon.kernels.scan import fill_lookup, scan
from fedanon.kernels.spans import span

# ruff: noqa: ARG001 -- an overload names the arguments of the function it stands for


class Classes(NamedTuple):
    """A partition under change.

    Parameters
    ----------
    label, place : class of every record, and where it stands among that class's members.
    member, size : the records of every class; size 0 marks an empty class.
    cost : cost of every class.
    free : stack of the empty classes; its last entry counts them.
    rules : what classes keep beyond their size, see :mod:`fedanon.anonymizers.anneal._rules`.
    """

    label: Any
    place: Any
    member: Any
    size: Any
    cost: Any
    free: Any
    rules: Any


def change(costs, classes, group, leaves, joins):
    """Change of a class's cost when record ``leaves`` goes and ``joins`` comes (-1: none)."""
    raise NotImplementedError


def exchange(costs, classes, a, b, record, other):
    """Changes of the costs of classes a and b when ``record`` of a and ``other`` of b trade places."""
    raise NotImplementedError


def update(costs, classes, group, leaves, joins):
    """Bring the aggregate of a class up to date, after its members have changed."""
    raise NotImplementedError


def recount(costs, classes, group):
    """Aggregate and cost of a class from its members."""
    raise NotImplementedError


def distances(costs, row, rows, lookup, out):
    """Distance of a record to each of ``rows``, into ``out``: squared (SSE) or the loss of the cell of both (NCP)."""
    raise NotImplementedError


@overload(change)
def _change(costs, classes, group, leaves, joins):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, group, leaves, joins: sse_change(costs, classes, group, leaves, joins)
    return lambda costs, classes, group, leaves, joins: ncp_change(costs, classes, group, leaves, joins)


@overload(exchange)
def _exchange(costs, classes, a, b, record, other):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, a, b, record, other: sse_exchange(costs, classes, a, b, record, other)
    return lambda costs, classes, a, b, record, other: ncp_exchange(costs, classes, a, b, record, other)


@overload(update)
def _update(costs, classes, group, leaves, joins):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, group, leaves, joins: sse_update(costs, classes, group, leaves, joins)
    return lambda costs, classes, group, leaves, joins: ncp_update(costs, classes, group, leaves, joins)


@overload(recount)
def _recount(costs, classes, group):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, group: sse_recount(costs, classes, group)
    return lambda costs, classes, group: ncp_recount(costs, classes, group)


@overload(distances)
def _distances(costs, row, rows, lookup, out):
    if costs.instance_class is SseCosts:
        return lambda costs, row, rows, lookup, out: sse_distances(costs, row, rows, lookup, out)
    return lambda costs, row, rows, lookup, out: ncp_distances(costs, row, rows, lookup, out)


# ---- The annealer's objective for mixed columns --------------------------------------------------

NEAR, N_NEAR, NEXT, N_NEXT = range(4)


class NcpCosts(NamedTuple):
    """Class size times the loss of the class's cell (NCP); numeric columns come first.

    Parameters
    ----------
    spans, codes, points : the records, see :mod:`fedanon.data.spans`.
    numeric : number of numeric columns.
    level : largest power of two, as an exponent, up to each length.
    ends : for every class, column and side (low; high, with the sign changed) the two outermost positions and how many
        records are at each, so that the cell without any one record is known at once.
    """

    spans: Any
    codes: Any
    points: Any
    numeric: Any
    level: Any
    ends: Any


@njit(cache=True, inline="always")
def _cell_loss(costs, column, low, high):
    """:func:`~fedanon.kernels.spans.span` without branches: nothing about a trial's cells can be foreseen."""
    if column < costs.numeric:
        return min((high - low) * costs.spans.scale[column], costs.spans.cap)
    first = int(low)
    length = int(high) - first
    level = costs.level[length]
    row = costs.spans.offset[column] + level * costs.spans.width[column] + first
    loss = max(costs.spans.maxima[row], costs.spans.maxima[row + length - (1 << level)])
    return loss * (length > 0)


@njit(cache=True, inline="always")
def ncp_change(costs, classes, group, leaves, joins):
    """O(q): an end whose last record leaves gives way to the next one."""
    gone = leaves if leaves >= 0 else joins  # where one is none, the other stands in and is masked
    come = joins if joins >= 0 else leaves
    total = 0.0
    for c in range(costs.points.shape[1]):
        x = costs.points[gone, c]
        y = costs.points[come, c]
        low = costs.ends[group, c, 0, NEAR]
        if (x == low) & (costs.ends[group, c, 0, N_NEAR] == 1.0) & (leaves >= 0):
            low = costs.ends[group, c, 0, NEXT]
        high = costs.ends[group, c, 1, NEAR]
        if (-x == high) & (costs.ends[group, c, 1, N_NEAR] == 1.0) & (leaves >= 0):
            high = costs.ends[group, c, 1, NEXT]
        if joins >= 0:
            low, high = min(low, y), min(high, -y)
        total += _cell_loss(costs, c, low, -high)
    size = classes.size[group] + (joins >= 0) - (leaves >= 0)
    return size * total - classes.cost[group]


@njit(cache=True)
def ncp_exchange(costs, classes, a, b, record, other):
    """Both changes of a swap."""
    return ncp_change(costs, classes, a, record, other), ncp_change(costs, classes, b, other, record)


@njit(cache=True)
def ncp_update(costs, classes, group, leaves, joins):
    """O(q), and O(size) for every end whose two outermost positions lost one."""
    for c in range(costs.points.shape[1]):
        for side in range(2):
            sign = 1.0 - 2.0 * side
            end = costs.ends[group, c, side]
            if leaves >= 0 and _vanishes(end, sign * costs.points[leaves, c]):
                _find_end(costs, classes, group, c, side)
            elif joins >= 0:
                _extend(end, sign * costs.points[joins, c])


@njit(cache=True)
def _vanishes(end, x):
    """Take ``x`` away from an end; whether it was the last of its position, so that the next must be searched."""
    if x == end[NEAR]:
        end[N_NEAR] -= 1.0
        return end[N_NEAR] == 0.0
    if x == end[NEXT]:
        end[N_NEXT] -= 1.0
        return end[N_NEXT] == 0.0
    return False


@njit(cache=True)
def _extend(end, x):
    """Let an end know of one more record at ``x``."""
    if x < end[NEAR]:
        end[NEXT], end[N_NEXT] = end[NEAR], end[N_NEAR]
        end[NEAR], end[N_NEAR] = x, 1.0
    elif x == end[NEAR]:
        end[N_NEAR] += 1.0
    elif x < end[NEXT]:
        end[NEXT], end[N_NEXT] = x, 1.0
    elif x == end[NEXT]:
        end[N_NEXT] += 1.0


@njit(cache=True)
def _find_end(costs, classes, group, column, side):
    end, sign = costs.ends[group, column, side], 1.0 - 2.0 * side
    end[NEAR], end[NEXT] = np.inf, np.inf
    for m in range(classes.size[group]):
        _extend(end, sign * costs.points[classes.member[group, m], column])


@njit(cache=True)
def ncp_recount(costs, classes, group):
    """O(size q)."""
    total = 0.0
    for c in range(costs.points.shape[1]):
        _find_end(costs, classes, group, c, 0)
        _find_end(costs, classes, group, c, 1)
        total += _cell_loss(costs, c, costs.ends[group, c, 0, NEAR], -costs.ends[group, c, 1, NEAR])
    classes.cost[group] = classes.size[group] * total


@njit(cache=True)
def ncp_distances(costs, row, rows, lookup, out):
    """Loss of the cell of two records; by look-up table where that pays."""
    count, q = rows.shape[0], costs.points.shape[1]
    if count * q > lookup.shape[0]:
        here = costs.points[row]
        fill_lookup(costs.spans, costs.codes, here, here, lookup)
        scan(lookup, costs.codes.flat, rows, count, out)
        return
    for i in range(count):
        total = 0.0
        for c in range(q):
            x, y = costs.points[row, c], costs.points[rows[i], c]
            total += span(costs.spans, c, min(x, y), max(x, y))
        out[i] = total


# ---- The annealer's objective for numbers --------------------------------------------------------

# ruff: noqa: ARG001 -- the objectives share their signatures


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
