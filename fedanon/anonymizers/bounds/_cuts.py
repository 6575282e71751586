# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Kernels for cuts: of any three records, at most one class holds two or more."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def triggered(groups, sizes, cuts, first, listed):
    """The cuts that every group counts in, one list after the other, and where each begins.

    ``listed[first[i] : first[i + 1]]`` are the cuts of record i.
    """
    begin = np.zeros(groups.shape[0] + 1, np.int64)
    out = np.empty(16 * groups.shape[0] + 1024, np.int64)
    held = np.zeros(cuts.shape[0], np.int64)
    count = 0
    for j in range(groups.shape[0]):
        for i in groups[j, : sizes[j]]:
            for cut in listed[first[i] : first[i + 1]]:
                held[cut] += 1
                if held[cut] == 2:
                    if count == out.shape[0]:
                        out = np.concatenate((out, np.empty_like(out)))
                    out[count] = cut
                    count += 1
        for i in groups[j, : sizes[j]]:
            for cut in listed[first[i] : first[i + 1]]:
                held[cut] = 0
        begin[j + 1] = count
    return begin, out[:count]


@njit(cache=True, nogil=True)
def ascend_with_cuts(groups, sizes, cost, begin, trigger, scale, unit, prices, penalties, steps, first, last):
    """As :func:`~fedanon.anonymizers.bounds._pool.ascend`, with a penalty on every cut that a group counts in.

    Returns mean prices and penalties which no group of the pool undercuts, and how often each group was chosen.
    """
    n = prices.shape[0]
    prices, penalties = prices.copy(), penalties.copy()
    reduced, choice = np.empty(n), np.zeros(n, np.int64)
    slope, covered, mean = np.zeros(n), np.empty(n), np.zeros(n)
    pull, counted, mean_penalties = np.zeros(len(penalties)), np.empty(len(penalties)), np.zeros(len(penalties))
    share, chosen = np.zeros(groups.shape[0]), np.zeros(groups.shape[0])
    kept = 0
    for step in range(steps):
        reduced[:] = np.inf
        for j in range(groups.shape[0]):
            per_member = cost[j]
            for i in groups[j, : sizes[j]]:
                per_member -= prices[i]
            for cut in trigger[begin[j] : begin[j + 1]]:
                per_member += penalties[cut]
            per_member /= sizes[j]
            for i in groups[j, : sizes[j]]:
                if per_member < reduced[i]:
                    reduced[i], choice[i] = per_member, j
        share[:] = 0.0
        for i in range(n):
            share[choice[i]] += 1.0 / sizes[choice[i]]
        covered[:] = 0.0
        counted[:] = 0.0
        for j in range(groups.shape[0]):
            if share[j] > 0.0:
                for i in groups[j, : sizes[j]]:
                    covered[i] += share[j]
                for cut in trigger[begin[j] : begin[j + 1]]:
                    counted[cut] += share[j]
        if step >= 0.7 * steps:
            mean += prices + reduced
            mean_penalties += penalties
            chosen += share
            kept += 1
        pace = first * (last / first) ** (step / steps)
        for i in range(n):
            slope[i] = 0.5 * slope[i] + 0.5 * max(1.0 - covered[i], -1.0)
            prices[i] += pace * slope[i] * max(scale[i], abs(prices[i]))
        for cut in range(len(penalties)):
            pull[cut] = 0.5 * pull[cut] + 0.5 * min(counted[cut] - 1.0, 1.0)
            penalties[cut] = max(0.0, penalties[cut] + pace * pull[cut] * max(unit[cut], penalties[cut]))
    return mean / kept, mean_penalties / kept, chosen / kept


@njit(cache=True, nogil=True)
def violated_triples(groups, sizes, share, first, listed, n, least, most):
    """Triples of records that groups with two of them cover more than ``least`` times; at most ``most`` per record.

    ``listed[first[i] : first[i + 1]]`` are the groups with a share that hold record i.
    """
    found, excess = [(0, 0, 0)], [0.0]
    found.clear()
    excess.clear()
    weight, seen = np.zeros(n), np.empty(n, np.int64)
    for u in range(n):
        count = 0
        for j in listed[first[u] : first[u + 1]]:
            for v in groups[j, : sizes[j]]:
                if v != u:
                    if weight[v] == 0.0:
                        seen[count] = v
                        count += 1
                    weight[v] += share[j]
        mine = seen[:count]
        best, who = np.zeros(most), np.zeros((most, 2), np.int64)
        for a in range(count):
            for b in range(a):
                v, w = min(mine[a], mine[b]), max(mine[a], mine[b])
                # each triple once, from the record that is in the middle of it
                if weight[v] + weight[w] < 0.7 * least - 0.2:
                    continue
                total = weight[v] + weight[w]
                for j in listed[first[v] : first[v + 1]]:
                    has_u, has_w = False, False
                    for i in groups[j, : sizes[j]]:
                        has_u |= i == u
                        has_w |= i == w
                    if has_w:
                        total += -share[j] if has_u else share[j]
                if total > least and total > best[most - 1]:
                    at = most - 1
                    while at > 0 and best[at - 1] < total:
                        best[at], who[at] = best[at - 1], who[at - 1]
                        at -= 1
                    best[at], who[at, 0], who[at, 1] = total, v, w
        for at in range(most):
            if best[at] > 0.0:
                v, w = who[at]
                found.append((min(u, v), min(max(u, v), max(min(u, v), w)), max(u, w)))
                excess.append(best[at])
        for v in mine:
            weight[v] = 0.0
    return found, excess
