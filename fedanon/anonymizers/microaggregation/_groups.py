# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Group means that follow as records come and go, and what a move costs in SSE.

Taking x out of a group of m records saves m / (m - 1) |x - mean|^2, putting it into one of m adds m / (m + 1)
|x - mean|^2.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.microaggregation._neighbors import squared_distance


@njit(cache=True)
def group_means(points, labels, count):
    """Mean and size of every group; records labeled -1 are in none, and empty groups have mean 0."""
    means, sizes = np.zeros((count, points.shape[1])), np.zeros(count, dtype=np.int64)
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            means[labels[i]] += points[i]
            sizes[labels[i]] += 1
    for group in range(count):
        means[group] /= max(sizes[group], 1)
    return means, sizes


@njit(cache=True)
def to_mean(points, i, means, group):
    """Squared distance of a record to the mean of a group."""
    total = 0.0
    for c in range(points.shape[1]):
        difference = points[i, c] - means[group, c]
        total += difference * difference
    return total


@njit(cache=True)
def join(points, i, means, sizes, group):
    """Put a record into a group."""
    sizes[group] += 1
    for c in range(points.shape[1]):
        means[group, c] += (points[i, c] - means[group, c]) / sizes[group]


@njit(cache=True)
def leave(points, i, means, sizes, group):
    """Take a record out of its group."""
    sizes[group] -= 1
    for c in range(points.shape[1]):
        means[group, c] -= (points[i, c] - means[group, c]) / max(sizes[group], 1)


@njit(cache=True)
def cost(points, i, means, sizes, group):
    """What putting record i into a group adds to the SSE; nothing if the group is empty."""
    return to_mean(points, i, means, group) * sizes[group] / (sizes[group] + 1)


@njit(cache=True)
def saving(points, i, means, sizes, group):
    """What taking record i out of its group takes off the SSE; nothing if it is alone."""
    if sizes[group] < 2:
        return 0.0
    return to_mean(points, i, means, group) * sizes[group] / (sizes[group] - 1)


@njit(cache=True)
def nearest_group(points, i, means, sizes, barred):
    """The group with the nearest mean, leaving out empty ones and those where ``barred`` holds; -1 if there is none."""
    best, nearest = np.inf, -1
    for group in range(sizes.shape[0]):
        if sizes[group] > 0 and not barred[group]:
            d = to_mean(points, i, means, group)
            if d < best:
                best, nearest = d, group
    return nearest


@njit(cache=True)
def sse(points, labels, count):
    """Sum of squared distances to the group means."""
    return np.sum(group_sse(points, labels, count))


@njit(cache=True)
def group_sse(points, labels, count):
    """Sum of squared distances to the mean, group by group."""
    means = group_means(points, labels, count)[0]
    own = np.zeros(count)
    for i in range(labels.shape[0]):
        own[labels[i]] += to_mean(points, i, means, labels[i])
    return own


# ---- More, fewer or better groups ----------------------------------------------------------------


@njit(cache=True)
def join_nearest(points, labels):
    """Give every record labeled -1 to the group with the nearest mean, in place; means follow as records join."""
    means, sizes = group_means(points, labels, labels.max() + 1)
    barred = np.zeros(sizes.shape[0], dtype=np.bool_)
    for i in range(labels.shape[0]):
        if labels[i] < 0:
            labels[i] = nearest_group(points, i, means, sizes, barred)
            join(points, i, means, sizes, labels[i])


@njit(cache=True)
def dissolve_groups(points, labels):
    """Dissolve every group whose records cost less SSE in their nearest other groups, largest SSE first, in place.

    The second phase of TFRP (Chang, Li & Huang 2007).
    """
    count = labels.max() + 1
    if count < 2:
        return
    means, sizes = group_means(points, labels, count)
    barred = np.zeros(count, dtype=np.bool_)
    for group in np.argsort(-group_sse(points, labels, count), kind="mergesort"):
        members = np.flatnonzero(labels == group)
        barred[group] = True
        targets, price = _hand_out(points, members, means, sizes, barred)
        if price < _spread(points, members) - 1e-12:
            labels[members] = targets
            continue
        barred[group] = False
        for m in range(members.shape[0]):
            leave(points, members[m], means, sizes, targets[m])


@njit(cache=True)
def _hand_out(points, members, means, sizes, barred):
    """Put the members into their nearest groups that are not barred; these, and the SSE they add."""
    targets = np.empty(members.shape[0], dtype=np.int64)
    price = 0.0
    for m in range(members.shape[0]):
        targets[m] = nearest_group(points, members[m], means, sizes, barred)
        price += cost(points, members[m], means, sizes, targets[m])
        join(points, members[m], means, sizes, targets[m])
    return targets, price


@njit(cache=True)
def _spread(points, members):
    """SSE of some records as one group."""
    return group_sse(points[members], np.zeros(members.shape[0], dtype=np.int64), 1)[0]


@njit(cache=True)
def dissolve_cheapest(points, labels, count, wanted):
    """Give the records of count - wanted groups to their nearest other groups, in place.

    The groups are those whose records would, at first, add least SSE elsewhere beyond what they save.
    """
    means, sizes = group_means(points, labels, count)
    price = -group_sse(points, labels, count)
    barred = np.zeros(count, dtype=np.bool_)
    for i in range(labels.shape[0]):
        barred[labels[i]] = True
        price[labels[i]] += cost(points, i, means, sizes, nearest_group(points, i, means, sizes, barred))
        barred[labels[i]] = False
    barred[np.argsort(price, kind="mergesort")[: count - wanted]] = True
    for i in range(labels.shape[0]):
        if barred[labels[i]]:
            labels[i] = nearest_group(points, i, means, sizes, barred)


@njit(cache=True)
def split_costliest(points, labels, count, wanted):
    """Split the group of largest SSE between its two ends until there are ``wanted`` groups, in place."""
    own = np.zeros(wanted)
    own[:count] = group_sse(points, labels, count)
    for new in range(count, wanted):
        group = np.argmax(own[:new])
        members = np.flatnonzero(labels == group)
        one = _farthest(points, members, members[0])
        other = _farthest(points, members, one)
        for i in members:
            if squared_distance(points, i, other) < squared_distance(points, i, one):
                labels[i] = new
        own[group] = _spread(points, np.flatnonzero(labels == group))
        own[new] = _spread(points, np.flatnonzero(labels == new))


@njit(cache=True)
def _farthest(points, members, i):
    best, farthest = -1.0, i
    for j in members:
        d = squared_distance(points, i, j)
        if d > best:
            best, farthest = d, j
    return farthest


# ---- The two classic descents of SSE with a fixed number of groups, and the routine that fills groups below g ---

#: a move must gain more than rounding
LEAST_GAIN = 1e-10


@njit(cache=True)
def h_means(points, labels, count, least=0):
    """Make the single move that lowers SSE most until none does (Hansen & Mladenovic 2001), in place.

    No record leaves a group of ``least`` or fewer. The best target of every record is remembered; after a move only
    the two groups it touched are compared again.
    """
    n = labels.shape[0]
    means, sizes = group_means(points, labels, count)
    costs, targets, savings = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n)
    for i in range(n):
        costs[i], targets[i] = _best_target(points, i, labels, means, sizes)
        savings[i] = _saving_above(points, i, means, sizes, labels[i], least)
    for _ in range(50 * n):
        chosen = np.argmax(savings - costs)
        if savings[chosen] - costs[chosen] <= LEAST_GAIN:
            break
        left, joined = labels[chosen], targets[chosen]
        _move(points, labels, means, sizes, chosen, joined)
        for i in range(n):
            _compare_again(points, i, labels, means, sizes, left, joined, costs, targets, savings, least)


@njit(cache=True)
def _saving_above(points, i, means, sizes, group, least):
    """What taking record i out of its group saves, if the group may lose one."""
    return saving(points, i, means, sizes, group) if sizes[group] > least else -np.inf


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
def _compare_again(points, i, labels, means, sizes, left, joined, costs, targets, savings, least):
    """Bring the remembered move of record i up to date with the groups ``left`` and ``joined``."""
    if labels[i] == left or labels[i] == joined:
        savings[i] = _saving_above(points, i, means, sizes, labels[i], least)
    if targets[i] == left or targets[i] == joined or targets[i] == labels[i]:
        costs[i], targets[i] = _best_target(points, i, labels, means, sizes)
        return
    for group in (left, joined):
        if group != labels[i]:
            now = _cost_below(points, i, means, sizes, group, costs[i])
            if now < costs[i]:
                costs[i], targets[i] = now, group


@njit(cache=True)
def k_means(points, labels, count, least=0):
    """Give every record to the nearest mean and move the means until nothing changes (Lloyd), in place.

    No record leaves a group of ``least`` or fewer. A group that loses all its records stays empty.
    """
    for _ in range(1000):
        means, sizes = group_means(points, labels, count)
        now = sizes.copy()
        moved = False
        for i in range(labels.shape[0]):
            group = _nearest_mean(points, i, means, sizes, labels[i])
            if group != labels[i] and now[labels[i]] > least:
                now[labels[i]] -= 1
                now[group] += 1
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
