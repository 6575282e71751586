# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Kernel of :mod:`fedanon.joint.merging`: which classes take the regions that cannot stand alone, by annealing."""

from __future__ import annotations

import numpy as np
from numba import njit

#: first and last temperature, in people who lose everything
HOT, COLD = 1.0, 0.01
#: how often a move suppresses the region, or goes to any class instead of a neighbor's
SUPPRESS, ANYWHERE = 0.02, 0.14


@njit(cache=True)
def absorb(low, high, people, class_of, free, near, losses, trials, rng):
    """Move free regions between classes; the best classes found, one per region, -1 if suppressed.

    Parameters
    ----------
    low, high : boxes of the regions, coded so that ``losses[axis, low, high]`` is the loss of a hull.
    people : number of people in each region.
    class_of : the class of every region at the start; every class has a region that is not free.
    free : the regions that may move.
    near : the neighbors of every region.
    """
    n_classes = class_of.max() + 1
    first, following = _linked(class_of, n_classes)
    size, loss = np.zeros(n_classes), np.zeros(n_classes)
    for i in range(class_of.shape[0]):
        if class_of[i] >= 0:
            size[class_of[i]] += people[i]
    for c in range(n_classes):
        loss[c] = _hull_loss(low, high, losses, first[c], following, -1, -1)
    best, cost, least = class_of.copy(), 0.0, -1e-9
    for trial in range(trials):
        i = free[int(rng.random() * free.shape[0])]
        old, new = class_of[i], _target(i, class_of, near, n_classes, rng)
        if new == old:
            continue
        without = with_it = 0.0
        change = people[i] if new < 0 else 0.0
        if new >= 0:
            with_it = _hull_loss(low, high, losses, first[new], following, -1, i)
            change += (size[new] + people[i]) * with_it - size[new] * loss[new]
        if old >= 0:
            without = _hull_loss(low, high, losses, first[old], following, i, -1)
            change += (size[old] - people[i]) * without - size[old] * loss[old]
        else:
            change -= people[i]
        if change > 0 and rng.random() >= np.exp(-change / (HOT * (COLD / HOT) ** (trial / trials))):
            continue
        if old >= 0:
            _unlink(first, following, old, i)
            size[old] -= people[i]
            loss[old] = without
        if new >= 0:
            following[i] = first[new]
            first[new] = i
            size[new] += people[i]
            loss[new] = with_it
        class_of[i] = new
        cost += change
        if cost < least:
            least = cost
            best[:] = class_of
    return best


@njit(cache=True)
def _target(i, class_of, near, n_classes, rng):
    chance = rng.random()
    if chance < SUPPRESS:
        return -1
    if chance < SUPPRESS + ANYWHERE:
        return int(rng.random() * n_classes)
    return class_of[near[i, int(rng.random() * near.shape[1])]]


@njit(cache=True)
def _linked(class_of, n_classes):
    """The regions of every class as a chain: the first region, and the one after each."""
    first = np.full(n_classes, -1, dtype=np.int64)
    following = np.full(class_of.shape[0], -1, dtype=np.int64)
    for i in range(class_of.shape[0]):
        if class_of[i] >= 0:
            following[i] = first[class_of[i]]
            first[class_of[i]] = i
    return first, following


@njit(cache=True)
def _unlink(first, following, c, i):
    if first[c] == i:
        first[c] = following[i]
        return
    at = first[c]
    while following[at] != i:
        at = following[at]
    following[at] = following[i]


@njit(cache=True)
def _hull_loss(low, high, losses, start, following, without, with_it):
    """Mean loss of the box around a chain of regions, without one of them or with one more."""
    total = 0.0
    for a in range(low.shape[1]):
        lowest, highest = losses.shape[1], -1
        if with_it >= 0:
            lowest, highest = low[with_it, a], high[with_it, a]
        at = start
        while at >= 0:
            if at != without:
                lowest, highest = min(lowest, low[at, a]), max(highest, high[at, a])
            at = following[at]
        total += losses[a, lowest, highest]
    return total / low.shape[1]
