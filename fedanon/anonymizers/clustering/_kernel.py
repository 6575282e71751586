# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Clusters grown round seed records: nearest neighbours, k-member and one-pass k-means."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.scan import drop, enlarge, fill_lookup, join_least, k_smallest, point, scan


@njit(cache=True)
def nearest_neighbor_clusters(spans, codes, k, draws):
    """A random seed and its k - 1 nearest, again and again; what is left joins the nearest cell. O(n^2 q / k)."""
    n, q = codes.flat.shape
    labels = np.full(n, -1, dtype=np.int32)
    rows = np.arange(n)
    low, high, sizes = np.empty((n // k, q)), np.empty((n // k, q)), np.zeros(n // k, dtype=np.int64)
    lookup, loss = np.empty(codes.position.shape[0]), np.empty(n)
    near = np.empty(k, dtype=np.int64)
    count, left = 0, n
    while left >= k:
        seed = min(int(draws[count] * left), left - 1)
        point(codes, rows[seed], low[count])
        high[count] = low[count]
        fill_lookup(spans, codes, low[count], high[count], lookup)
        scan(lookup, codes.flat, rows, left, loss)
        loss[seed] = -1.0
        k_smallest(loss, left, k, near)
        for i in near:
            labels[rows[i]] = count
            enlarge(codes, rows[i], low[count], high[count])
        sizes[count] = k
        left = drop(rows, left, labels)
        count += 1
    _join_rest(spans, codes, rows, left, low, high, sizes, count, labels, False)
    return labels


@njit(cache=True)
def k_member_clusters(spans, codes, k, first):
    """Each cluster starts at the record farthest from the last one taken and grows by least increase. O(n^2 q)."""
    n, q = codes.flat.shape
    labels = np.full(n, -1, dtype=np.int32)
    rows = np.arange(n)
    low, high, sizes = np.empty((n // k, q)), np.empty((n // k, q)), np.zeros(n // k, dtype=np.int64)
    lookup, loss = np.empty(codes.position.shape[0]), np.empty(n)
    here = np.empty(q)
    point(codes, first, here)
    count, left = 0, n
    while left >= k:
        fill_lookup(spans, codes, here, here, lookup)
        scan(lookup, codes.flat, rows, left, loss)
        at = np.argmax(loss[:left])
        point(codes, rows[at], low[count])
        high[count] = low[count]
        for taken in range(k):
            if taken > 0:
                fill_lookup(spans, codes, low[count], high[count], lookup)
                scan(lookup, codes.flat, rows, left, loss)
                at = np.argmin(loss[:left])
            enlarge(codes, rows[at], low[count], high[count])
            labels[rows[at]] = count
            point(codes, rows[at], here)
            left = drop(rows, left, labels)
        sizes[count] = k
        count += 1
    _join_rest(spans, codes, rows, left, low, high, sizes, count, labels, True)
    return labels


@njit(cache=True)
def one_pass_clusters(spans, codes, k, order):
    """One-pass k-means (OKA): seeds are order[:n // k]; large clusters then give their farthest away. O(n^2 q / k)."""
    n, q = codes.flat.shape
    total = n // k
    labels = np.full(n, -1, dtype=np.int32)
    low, high, sizes = np.empty((total, q)), np.empty((total, q)), np.zeros(total, dtype=np.int64)
    for g in range(total):
        point(codes, order[g], low[g])
        high[g] = low[g]
        sizes[g] = 1
        labels[order[g]] = g
    _join_rest(spans, codes, order[total:], n - total, low, high, sizes, total, labels, False)
    spare = _shed(spans, codes, k, low, high, sizes, labels)
    _refill(spans, codes, k, spare, low, high, sizes, labels)
    return labels


@njit(cache=True)
def _join_rest(spans, codes, rows, left, low, high, sizes, count, labels, weighted):
    for i in range(left):
        g = join_least(spans, codes, rows[i], low, high, sizes, count, weighted)
        labels[rows[i]] = g
        sizes[g] += 1
        enlarge(codes, rows[i], low[g], high[g])


@njit(cache=True)
def _shed(spans, codes, k, low, high, sizes, labels):
    """Clusters keep the k records whose own cells lie nearest their centre; returns the records let go."""
    n, q = codes.flat.shape
    order = np.argsort(labels, kind="mergesort")
    spare = np.empty(n, dtype=np.int64)
    spared, begin = 0, 0
    centre, lookup, loss = np.empty(q), np.empty(codes.position.shape[0]), np.empty(n)
    keep = np.empty(k, dtype=np.int64)
    for g in range(sizes.shape[0]):
        size = sizes[g]
        members = order[begin : begin + size]
        begin += size
        if size <= k:
            continue
        for c in range(q):
            centre[c] = np.median(codes.position[codes.flat[members, c]])
            if spans.scale[c] == 0.0:
                centre[c] = np.floor(centre[c])
        fill_lookup(spans, codes, centre, centre, lookup)
        scan(lookup, codes.flat, members, size, loss)
        k_smallest(loss, size, k, keep)
        labels[members] = -1
        low[g] = np.inf
        high[g] = -np.inf
        for i in keep:
            labels[members[i]] = g
            enlarge(codes, members[i], low[g], high[g])
        sizes[g] = k
        for row in members:
            if labels[row] < 0:
                spare[spared] = row
                spared += 1
    return spare[:spared]


@njit(cache=True)
def _refill(spans, codes, k, spare, low, high, sizes, labels):
    """Records let go join the nearest cluster that is still short of k, then the nearest of all."""
    short = np.flatnonzero(sizes < k)
    needed = np.sum(k - sizes[short])
    for row in spare:
        if needed > 0:
            g = short[join_least(spans, codes, row, low[short], high[short], sizes[short], short.shape[0], False)]
            needed -= 1
        else:
            g = join_least(spans, codes, row, low, high, sizes, sizes.shape[0], False)
        labels[row] = g
        sizes[g] += 1
        enlarge(codes, row, low[g], high[g])
        if needed > 0 and sizes[g] == k:
            short = short[short != g]
