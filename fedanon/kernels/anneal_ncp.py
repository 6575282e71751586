"""The annealer's objective for mixed columns: the normalised certainty penalty, in O(q) a change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fedanon.kernels.scan import fill_lookup, scan
from fedanon.kernels.span import span

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
    """:func:`~fedanon.kernels.span.span` without branches: nothing about a trial's cells can be foreseen."""
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
