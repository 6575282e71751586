# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Clusters grown around seed records (nearest neighbors, k-member, one-pass k-means), or split from above (TDG)."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.scan import drop, enlarge, fill_lookup, join_least, k_smallest, point, scan
from fedanon.kernels.spans import extent_loss, span


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
    """Clusters keep the k records whose own cells lie nearest their center; returns the records let go."""
    n, q = codes.flat.shape
    order = np.argsort(labels, kind="mergesort")
    spare = np.empty(n, dtype=np.int64)
    spared, begin = 0, 0
    center, lookup, loss = np.empty(q), np.empty(codes.position.shape[0]), np.empty(n)
    keep = np.empty(k, dtype=np.int64)
    for g in range(sizes.shape[0]):
        size = sizes[g]
        members = order[begin : begin + size]
        begin += size
        if size <= k:
            continue
        for c in range(q):
            center[c] = np.median(codes.position[codes.flat[members, c]])
            if spans.scale[c] == 0.0:
                center[c] = np.floor(center[c])
        fill_lookup(spans, codes, center, center, lookup)
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


# ---- Top-down greedy: split round the two records that are farthest apart, until classes would fall below k ---


ROUNDS = 3


@njit(cache=True)
def top_down_greedy(spans, codes, k, draws):
    """Group number of every record. Each level costs O(n q); balanced splits make about log2(n / k) levels."""
    n = codes.flat.shape[0]
    order = np.arange(n)
    labels = np.empty(n, dtype=np.int32)
    first = np.empty(n, dtype=np.int64)
    last = np.empty(n, dtype=np.int64)
    first[0], last[0], depth = 0, n, 1
    distance = np.empty((2, n))
    lookup = np.empty(codes.position.shape[0])
    count, step = 0, 0
    while depth > 0:
        depth -= 1
        start, end = first[depth], last[depth]
        cut = -1
        if end - start >= 2 * k:
            cut = _split(spans, codes, order[start:end], k, draws[step], distance, lookup)
            step += 1
        if cut < 0:
            labels[order[start:end]] = count
            count += 1
        else:
            first[depth], last[depth] = start, start + cut
            first[depth + 1], last[depth + 1] = start + cut, end
            depth += 2
    return labels


@njit(cache=True)
def _distances(spans, codes, low, high, rows, lookup, out):
    """Loss of the cell low..high once it holds each of ``rows``; by look-up table where that pays."""
    size, q = rows.shape[0], low.shape[0]
    if size * q > lookup.shape[0]:
        fill_lookup(spans, codes, low, high, lookup)
        scan(lookup, codes.flat, rows, size, out)
        return
    for i in range(size):
        total = 0.0
        for c in range(q):
            x = codes.position[codes.flat[rows[i], c]]
            total += span(spans, c, min(low[c], x), max(high[c], x))
        out[i] = total


@njit(cache=True)
def _split(spans, codes, rows, k, draw, distance, lookup):
    """Reorder ``rows`` into two parts of at least k and return the size of the first; -1 if they stay together."""
    size, q = rows.shape[0], codes.flat.shape[1]
    here = np.empty(q)
    v = min(int(draw * size), size - 1)
    for _ in range(ROUNDS):
        u = v
        point(codes, rows[u], here)
        _distances(spans, codes, here, here, rows, lookup, distance[0])
        distance[0, u] = -1.0
        v = np.argmax(distance[0, :size])
    distance[0, u] = 0.0
    point(codes, rows[v], here)
    _distances(spans, codes, here, here, rows, lookup, distance[1])
    to_v = distance[0, :size] > distance[1, :size]
    to_v[u], to_v[v] = False, True
    n_v = np.sum(to_v)
    if n_v < k:
        return _balance(spans, codes, rows, to_v, n_v, k, u, v, distance[0], lookup)
    if size - n_v < k:
        return _balance(spans, codes, rows, ~to_v, size - n_v, k, v, u, distance[0], lookup)
    return _arrange(rows, to_v, u, v)


@njit(cache=True)
def _balance(spans, codes, rows, small, n_small, k, seed, small_seed, distance, lookup):
    """Fill the small side from the large one, or keep all together, whichever loses less."""
    size, q = rows.shape[0], codes.flat.shape[1]
    low, high = np.full(q, np.inf), np.full(q, -np.inf)
    for i in range(size):
        if small[i]:
            enlarge(codes, rows[i], low, high)
    _distances(spans, codes, low, high, rows, lookup, distance)
    for i in range(size):
        if small[i]:
            distance[i] = np.inf
    near = np.empty(k - n_small, dtype=np.int64)
    k_smallest(distance, size, k - n_small, near)
    for i in near:
        small[i] = True
        enlarge(codes, rows[i], low, high)
    rest_low, rest_high = np.full(q, np.inf), np.full(q, -np.inf)
    for i in range(size):
        if not small[i]:
            enlarge(codes, rows[i], rest_low, rest_high)
    apart = k * extent_loss(spans, low, high) + (size - k) * extent_loss(spans, rest_low, rest_high)
    together = size * extent_loss(spans, np.minimum(low, rest_low), np.maximum(high, rest_high))
    if apart > together:
        return -1
    return _arrange(rows, small, -1 if small[seed] else seed, small_seed)


@njit(cache=True)
def _arrange(rows, second, first_seed, second_seed):
    """Put the rows of the first part before those of the second; the size of the first.

    A part begins with its seed (its most extreme record), so that the seed wins the ties of later rounds.
    """
    ordered = np.empty_like(rows)
    at = 0
    for part in range(2):
        seed = second_seed if part else first_seed
        if seed >= 0:
            ordered[at] = rows[seed]
            at += 1
        for i in range(rows.shape[0]):
            if second[i] == part and i != seed:
                ordered[at] = rows[i]
                at += 1
        if part == 0:
            size = at
    rows[:] = ordered
    return size
