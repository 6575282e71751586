# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Nearest records within blocks: lists for the annealer without a matrix of all distances."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.anneal._costs import distances


@njit(cache=True)
def metric_blocks(costs, rows, most, least, draws, lookup):
    """Reorder ``rows`` into blocks of ``least`` to ``most`` records near each other; the ends of the blocks.

    A block is halved at the median of d(x, u) - d(x, v), where v is far from a random record and u far from v.
    O(n log n) distances.
    """
    n = rows.shape[0]
    ends = [0]
    ends.clear()
    first, last = [0], [n]
    here, there = np.empty(n), np.empty(n)
    step = 0
    while len(first) > 0:
        start, end = first.pop(), last.pop()
        size = end - start
        if size <= most or size < 2 * least:
            ends.append(end)
            continue
        block = rows[start:end]
        seed = block[int(draws[step % draws.shape[0]] * size)]
        step += 1
        for _ in range(2):
            distances(costs, seed, block, lookup, there[:size])
            seed = block[np.argmax(there[:size])]
            here, there = there, here
        distances(costs, seed, block, lookup, there[:size])
        order = np.argsort(here[:size] - there[:size], kind="mergesort")
        rows[start:end] = block[order]
        first.append(start + size // 2)
        last.append(end)
        first.append(start)
        last.append(start + size // 2)
    return np.array(ends)


@njit(cache=True)
def offer_blocks(costs, rows, ends, own, near, distance, lookup):
    """Offer every record the other records of its block as neighbors; ``near`` keeps the nearest in order.

    The scan begins behind the record itself, so that equally near records are not always the same few. A record is
    its own neighbor where ``own`` says so.
    """
    out = np.empty(rows.shape[0])
    start = 0
    for end in ends:
        block = rows[start:end]
        size = end - start
        for at in range(size):
            row = block[at]
            distances(costs, row, block, lookup, out[:size])
            for step in range(size):
                other = (at + step) % size
                if out[other] < distance[row, -1] and (other != at or own[row]):
                    insert(near[row], distance[row], block[other], out[other])
        start = end


@njit(cache=True)
def insert(near, distance, candidate, d):
    """Keep a candidate that is nearer than the last of the list and not yet in it."""
    at = near.shape[0] - 1
    for i in range(at + 1):
        if near[i] == candidate:
            return
    while at > 0 and distance[at - 1] > d:
        near[at] = near[at - 1]
        distance[at] = distance[at - 1]
        at -= 1
    near[at] = candidate
    distance[at] = d


@njit(cache=True)
def local_scale(near, distance, count, wanted):
    """Mean distance of every distinct record to its ``wanted`` nearest records; count = how often each occurs."""
    n, width = near.shape
    scale = np.zeros(n)
    for row in range(n):
        left = wanted
        for i in range(width):
            other = near[row, i]
            if other < 0 or left <= 0:
                break
            take = min(left, count[other] - (other == row))
            scale[row] += take * distance[row, i]
            left -= take
        if left < wanted:
            scale[row] /= wanted - left
    return scale
