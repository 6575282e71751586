"""The two classic descents of SSE with a fixed number of groups, and the routine that fills groups below g."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.group_means import cost, group_means, join, leave, saving, to_mean

#: a move must gain more than rounding
LEAST_GAIN = 1e-10


@njit(cache=True)
def h_means(points, labels, count):
    """Make the single move that lowers SSE most until none does (Hansen & Mladenovic 2001), in place.

    The best target of every record is remembered; after a move only the two groups it touched are compared again.
    """
    n = labels.shape[0]
    means, sizes = group_means(points, labels, count)
    costs, targets, savings = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n)
    for i in range(n):
        costs[i], targets[i] = _best_target(points, i, labels, means, sizes)
        savings[i] = saving(points, i, means, sizes, labels[i])
    for _ in range(50 * n):
        chosen = np.argmax(savings - costs)
        if savings[chosen] - costs[chosen] <= LEAST_GAIN:
            break
        left, joined = labels[chosen], targets[chosen]
        _move(points, labels, means, sizes, chosen, joined)
        for i in range(n):
            _compare_again(points, i, labels, means, sizes, left, joined, costs, targets, savings)


@njit(cache=True)
def _move(points, labels, means, sizes, i, target):
    leave(points, i, means, sizes, labels[i])
    join(points, i, means, sizes, target)
    labels[i] = target


@njit(cache=True)
def _best_target(points, i, labels, means, sizes):
    """The group other than its own where record i costs least, and that cost."""
    best, target = np.inf, labels[i]
    for group in range(sizes.shape[0]):
        if group != labels[i]:
            now = _cost_below(points, i, means, sizes, group, best)
            if now < best:
                best, target = now, group
    return best, target


@njit(cache=True)
def _cost_below(points, i, means, sizes, group, limit):
    """The cost of putting record i into a group, or some number above ``limit`` once it is sure to be."""
    share = sizes[group] / (sizes[group] + 1)
    total = 0.0
    for c in range(points.shape[1]):
        difference = points[i, c] - means[group, c]
        total += difference * difference
        if total * share > limit:
            break
    return total * share


@njit(cache=True)
def _compare_again(points, i, labels, means, sizes, left, joined, costs, targets, savings):
    """Bring the remembered move of record i up to date with the groups ``left`` and ``joined``."""
    if labels[i] == left or labels[i] == joined:
        savings[i] = saving(points, i, means, sizes, labels[i])
    if targets[i] == left or targets[i] == joined or targets[i] == labels[i]:
        costs[i], targets[i] = _best_target(points, i, labels, means, sizes)
        return
    for group in (left, joined):
        if group != labels[i]:
            now = _cost_below(points, i, means, sizes, group, costs[i])
            if now < costs[i]:
                costs[i], targets[i] = now, group


@njit(cache=True)
def k_means(points, labels, count):
    """Give every record to the nearest mean and move the means until nothing changes (Lloyd), in place.

    A group that loses all its records stays empty.
    """
    for _ in range(1000):
        means, sizes = group_means(points, labels, count)
        moved = False
        for i in range(labels.shape[0]):
            group = _nearest_mean(points, i, means, sizes, labels[i])
            if group != labels[i]:
                labels[i] = group
                moved = True
        if not moved:
            break


@njit(cache=True)
def _nearest_mean(points, i, means, sizes, own):
    """The group with the nearest mean; the record's own unless another is nearer."""
    best, nearest = to_mean(points, i, means, own), own
    for group in range(sizes.shape[0]):
        if sizes[group] == 0:
            continue
        total = 0.0
        for c in range(points.shape[1]):
            difference = points[i, c] - means[group, c]
            total += difference * difference
            if total >= best:
                break
        if total < best:
            best, nearest = total, group
    return nearest


@njit(cache=True)
def fill_groups(points, labels, count, g):
    """Fill every group below g with the records, from groups above g, whose move costs least SSE, in place.

    The feasibility routine of Araújo & Aloise; needs count * g <= n.
    """
    means, sizes = group_means(points, labels, count)
    for group in range(count):
        while sizes[group] < g:
            best, chosen = np.inf, -1
            for i in range(labels.shape[0]):
                if sizes[labels[i]] > g:
                    change = cost(points, i, means, sizes, group) - saving(points, i, means, sizes, labels[i])
                    if change < best:
                        best, chosen = change, i
            _move(points, labels, means, sizes, chosen, group)
