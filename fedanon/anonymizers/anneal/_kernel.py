# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Simulated annealing of classes of k to 2k - 1 records, or more where rules need it: move, swap, dissolve, create."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fedanon.anonymizers.anneal._costs import change, exchange, recount, update
from fedanon.anonymizers.anneal._rules import forget, keeps, note


class Neighbors(NamedTuple):
    """Near records, found by way of the distinct ones, so that a frequent record does not crowd out all others.

    Parameters
    ----------
    near : for every distinct record its nearest, itself among them if it occurs more than once.
    kind : the distinct record of every record; records are sorted by it.
    first : where each distinct record begins; one more entry marks the end.
    scale : for every distinct record the unit of temperature, its distance to its nearest k - 1 records.
    """

    near: Any
    kind: Any
    first: Any
    scale: Any


class Work(NamedTuple):
    """Room for one trial: costs and origins of the records it moved, and candidates."""

    cost: Any
    origin: Any
    record: Any


# ---- random numbers ------------------------------------------------------------------------------


@njit(cache=True, inline="always")
def uniform(state):
    """A number in [0, 1): splitmix64 (Steele, Lea & Flood 2014), whose state lives between calls."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, inline="always")
def below(state, n):
    """A whole number in 0..n - 1."""
    return int(uniform(state) * n)


# ---- feasibility ---------------------------------------------------------------------------------


@njit(cache=True, inline="always")
def feasible(classes, k, group, leaves, joins):
    """Whether a class may be published once record ``leaves`` has gone and ``joins`` has come (-1: none)."""
    size = classes.size[group] + (joins >= 0) - (leaves >= 0)
    return k <= size <= classes.member.shape[1] and keeps(classes.rules, group, size, leaves, joins)


# ---- membership ----------------------------------------------------------------------------------


@njit(cache=True)
def _leave(costs, classes, record):
    group = classes.label[record]
    size = classes.size[group] - 1
    place = classes.place[record]
    last = classes.member[group, size]
    classes.member[group, place] = last
    classes.place[last] = place
    classes.size[group] = size
    note(classes.rules, group, record, -1)
    update(costs, classes, group, record, -1)


@njit(cache=True)
def _join(costs, classes, record, group):
    size = classes.size[group]
    classes.member[group, size] = record
    classes.place[record] = size
    classes.label[record] = group
    classes.size[group] = size + 1
    note(classes.rules, group, -1, record)
    update(costs, classes, group, -1, record)


# ---- the four moves; each returns the change of cost it made -------------------------------------


@njit(cache=True, inline="always")
def _any_record(classes, state):
    """A record, mostly of a class that costs anything: equal records of a class can gain nothing."""
    n = classes.label.shape[0]
    record = below(state, n)
    if classes.cost[classes.label[record]] == 0.0:
        record = below(state, n)
    return record


@njit(cache=True, inline="always")
def _near_record(near, state, record):
    """A record near another one, the nearest most often."""
    kind = near.kind[record]
    r = uniform(state)
    other = near.near[kind, int(r * r * near.near.shape[1])]
    return near.first[other] + below(state, near.first[other + 1] - near.first[other])


@njit(cache=True, inline="always")
def _move_or_swap(costs, classes, near, k, state, record, limit):
    """Into the class of a near record, where the sizes allow it, or in exchange for one of its members."""
    beside = _near_record(near, state, record)
    a, b = classes.label[record], classes.label[beside]
    if a == b:
        return 0.0
    other = _partner(classes, k, state, record, beside)
    if not (feasible(classes, k, a, record, other) and feasible(classes, k, b, other, record)):
        return 0.0
    if other < 0:
        ours = change(costs, classes, a, record, -1)
        theirs = change(costs, classes, b, -1, record)
    else:
        ours, theirs = exchange(costs, classes, a, b, record, other)
    total = ours + theirs
    if total > limit:
        return 0.0
    classes.cost[a] += ours
    classes.cost[b] += theirs
    _exchange(costs, classes, record, other, a, b)
    return total


@njit(cache=True, inline="always")
def _partner(classes, k, state, record, beside):
    """The member of the other class to swap with, not ``beside`` if it can be avoided; -1 for a plain move."""
    a, b = classes.label[record], classes.label[beside]
    if uniform(state) < 0.5 and feasible(classes, k, a, record, -1) and feasible(classes, k, b, -1, record):
        return -1
    other = classes.member[b, below(state, classes.size[b])]
    if other == beside:
        other = classes.member[b, below(state, classes.size[b])]
    return other


@njit(cache=True)
def _exchange(costs, classes, record, other, a, b):
    """Record goes from class a to b, ``other`` (if any) from b to a."""
    if other < 0:
        _leave(costs, classes, record)
        _join(costs, classes, record, b)
        return
    at, to = classes.place[record], classes.place[other]
    classes.member[a, at], classes.member[b, to] = other, record
    classes.place[record], classes.place[other] = to, at
    classes.label[record], classes.label[other] = b, a
    note(classes.rules, a, record, other)
    note(classes.rules, b, other, record)
    update(costs, classes, a, record, other)
    update(costs, classes, b, other, record)


@njit(cache=True)
def _dissolve(costs, classes, near, k, state, record, limit, work):
    """Send every member of a class to the near class that grows least; undone if the whole costs too much."""
    group = classes.label[record]
    size, total = classes.size[group], -classes.cost[group]
    done = 0
    # the class keeps its list and aggregate until all members are gone, so that undoing it is easy
    while done < size:
        one = classes.member[group, done]
        to, cost = _cheapest_class(costs, classes, near, k, state, one, group)
        total += cost
        if total > limit:
            break
        classes.cost[to] += cost
        work.cost[done] = cost
        _join(costs, classes, one, to)
        done += 1
    if done == size:
        _empty(classes, group)
        classes.free[classes.free[-1]] = group
        classes.free[-1] += 1
        return total
    for m in range(done - 1, -1, -1):
        one = classes.member[group, m]
        classes.cost[classes.label[one]] -= work.cost[m]
        _leave(costs, classes, one)
        classes.label[one] = group
        classes.place[one] = m
    return 0.0


@njit(cache=True)
def _cheapest_class(costs, classes, near, k, state, record, but):
    """The class of a near record that grows least by ``record``, and by how much: infinity if none has room."""
    best, least, last = -1, np.inf, but
    for other in near.near[near.kind[record]]:
        group = classes.label[near.first[other] + below(state, near.first[other + 1] - near.first[other])]
        if group in (but, last) or not feasible(classes, k, group, -1, record):
            continue
        last = group
        cost = change(costs, classes, group, -1, record)
        if cost < least:
            best, least = group, cost
    return best, least


@njit(cache=True)
def _create(costs, classes, near, k, record, limit, work):
    """A new class around a record, of near records that their classes can spare; undone if it costs too much."""
    if classes.free[-1] == 0 or not feasible(classes, k, classes.label[record], record, -1):
        return 0.0
    spare = _spare_records(classes, near, k, record, work.record)
    if spare < k - 1:
        return 0.0
    new = classes.free[classes.free[-1] - 1]
    total = change(costs, classes, classes.label[record], record, -1)
    _remember(classes, work, 0, record, total)
    _leave(costs, classes, record)
    _found(costs, classes, record, new)
    while classes.size[new] < k:
        one, gain, loss = _cheapest_record(costs, classes, k, new, work.record[:spare])
        if one < 0:
            break
        total += gain + loss
        _remember(classes, work, classes.size[new], one, gain)
        classes.cost[new] += loss
        _leave(costs, classes, one)
        _join(costs, classes, one, new)
    if feasible(classes, k, new, -1, -1) and total <= limit:
        classes.free[-1] -= 1
        return total
    for m in range(classes.size[new] - 1, -1, -1):
        classes.cost[work.origin[m]] -= work.cost[m]
        _join(costs, classes, classes.member[new, m], work.origin[m])
    _empty(classes, new)
    return 0.0


@njit(cache=True)
def _spare_records(classes, near, k, record, out):
    """Near records that their classes can spare, nearest first, into ``out``; how many."""
    count = 0
    for other in near.near[near.kind[record]]:
        for row in range(near.first[other], near.first[other + 1]):
            if row != record and feasible(classes, k, classes.label[row], row, -1):
                out[count] = row
                count += 1
                if count == out.shape[0]:
                    return count
    return count


@njit(cache=True)
def _remember(classes, work, at, record, gain):
    """Remember where a record came from, for undoing."""
    origin = classes.label[record]
    work.origin[at] = origin
    work.cost[at] = gain
    classes.cost[origin] += gain


@njit(cache=True)
def _found(costs, classes, record, group):
    """The first member of an empty class."""
    classes.member[group, 0] = record
    classes.place[record] = 0
    classes.label[record] = group
    classes.size[group] = 1
    note(classes.rules, group, -1, record)
    recount(costs, classes, group)


@njit(cache=True)
def _empty(classes, group):
    """A class without members."""
    classes.size[group] = 0
    classes.cost[group] = 0.0
    forget(classes.rules, group)


@njit(cache=True)
def _cheapest_record(costs, classes, k, new, records):
    """The record whose change to the class ``new`` costs least, with the two changes it makes; -1 if none can."""
    best, gain, loss = -1, 0.0, np.inf
    for record in records:
        group = classes.label[record]
        if group == new or not feasible(classes, k, group, record, -1):
            continue
        here = change(costs, classes, group, record, -1)
        there = change(costs, classes, new, -1, record)
        if here + there < gain + loss:
            best, gain, loss = record, here, there
    return best, gain, loss


# ---- the search ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def anneal(costs, classes, near, k, steps, temperature, structural, state):
    """Try ``steps`` moves at one temperature; returns the change of the total cost. O(columns) a move or swap.

    A move that costs ``d`` more is made with probability exp(-d / (temperature x scale of its record)). A share
    ``structural`` of the trials dissolves or creates a class.
    """
    most = classes.member.shape[1] + 1
    work = Work(np.empty(most), np.empty(most, dtype=np.int64), np.empty(4 * k, dtype=np.int64))
    total = 0.0
    for _ in range(steps):
        record = _any_record(classes, state)
        limit = -temperature * near.scale[near.kind[record]] * np.log(1.0 - uniform(state))
        kind = uniform(state)
        if kind >= structural:
            total += _move_or_swap(costs, classes, near, k, state, record, limit)
        elif kind < 0.5 * structural:
            total += _dissolve(costs, classes, near, k, state, record, limit, work)
        else:
            total += _create(costs, classes, near, k, record, limit, work)
    return total


@njit(cache=True, nogil=True)
def settle(costs, classes, labels):
    """Make ``labels`` the partition: members, aggregates and costs anew; returns the total cost."""
    for group in range(classes.size.shape[0]):
        _empty(classes, group)
    for record in range(labels.shape[0]):
        group = labels[record]
        classes.label[record] = group
        classes.place[record] = classes.size[group]
        classes.member[group, classes.size[group]] = record
        classes.size[group] += 1
        note(classes.rules, group, -1, record)
    free = 0
    for group in range(classes.size.shape[0] - 1, -1, -1):
        if classes.size[group] == 0:
            classes.free[free] = group
            free += 1
        else:
            recount(costs, classes, group)
    classes.free[-1] = free
    return np.sum(classes.cost)


@njit(cache=True)
def class_cost(costs, classes, members):
    """Cost of one class; what was in the first class before is lost."""
    classes.size[0] = members.shape[0]
    classes.member[0, : members.shape[0]] = members
    recount(costs, classes, 0)
    return classes.cost[0]
