"""More, fewer or better groups: records without one join the nearest, groups are given up or split."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.group_means import cost, group_means, group_sse, join, leave, nearest_group
from fedanon.kernels.neighbors import squared_distance


@njit(cache=True)
def join_nearest(points, labels):
    """Give every record labelled -1 to the group with the nearest mean, in place; means follow as records join."""
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
