# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Mondrian's recursion on an explicit stack: regions of rows, cut along their widest attribute."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.spans import span


@njit(cache=True)
def mondrian(spans, trees, points, k, relaxed, strict_children):
    """Group number of every row. Each level of the recursion costs O(n q + n log n); there are about log2(n / k)."""
    n = points.shape[0]
    order = np.arange(n)
    labels = np.empty(n, dtype=np.int32)
    stack = [(0, n)]
    count = 0
    part = np.empty(n, dtype=np.int64)
    while len(stack) > 0:
        start, end = stack.pop()
        ends = _cut(spans, trees, points, order, part, start, end, k, relaxed, strict_children)
        if len(ends) < 2:
            labels[order[start:end]] = count
            count += 1
        else:
            begin = start
            for stop in ends:
                stack.append((begin, stop))
                begin = stop
    return labels


@njit(cache=True)
def propose_cuts(spans, trees, points, order, starts, ends, ranks, k, relaxed, strict_children):
    """Cut regions order[start:end] along the column that is next in width after ``ranks`` others.

    Returns a copy of ``order`` with the parts in a row, the ends of all parts, and their number for each region: 1 if
    the column allows no cut, 0 if there is no such column.
    """
    proposed = order.copy()
    part = np.empty(points.shape[0], dtype=np.int64)
    part_ends = np.empty(points.shape[0], dtype=np.int64)
    counts = np.zeros(starts.shape[0], dtype=np.int64)
    used = 0
    for r in range(starts.shape[0]):
        start, end = starts[r], ends[r]
        if end - start < 2 * k:
            continue
        low, high, width = _extents(spans, points, order, start, end)
        for _ in range(ranks[r]):
            width[np.argmax(width)] = -1.0
        column = int(np.argmax(width))
        if width[column] <= 0.0:
            continue
        bounds = (low[column], high[column])
        cut = _cut_column(spans, trees, points, proposed, part, start, end, column, bounds, k, relaxed, strict_children)
        counts[r] = len(cut)
        for stop in cut:
            part_ends[used] = stop
            used += 1
    return proposed, part_ends[:used], counts


@njit(cache=True)
def _cut(spans, trees, points, order, part, start, end, k, relaxed, strict_children):
    """Reorder order[start:end] into parts along the widest column that allows it; the ends of the parts."""
    ends = [end]
    if end - start < 2 * k:
        return ends
    low, high, width = _extents(spans, points, order, start, end)
    for _ in range(points.shape[1]):
        c = int(np.argmax(width))
        if width[c] <= 0.0:
            break
        width[c] = -1.0
        bounds = (low[c], high[c])
        ends = _cut_column(spans, trees, points, order, part, start, end, c, bounds, k, relaxed, strict_children)
        if len(ends) > 1:
            break
    return ends


@njit(cache=True)
def _extents(spans, points, order, start, end):
    """Lowest and highest position of a region in every column, and the loss of that width."""
    q = points.shape[1]
    low = points[order[start]].copy()
    high = low.copy()
    for i in range(start + 1, end):
        row = order[i]
        for c in range(q):
            x = points[row, c]
            if x < low[c]:
                low[c] = x
            elif x > high[c]:
                high[c] = x
    width = np.empty(q)
    for c in range(q):
        width[c] = span(spans, c, low[c], high[c])
    return low, high, width


@njit(cache=True)
def _cut_column(spans, trees, points, order, part, start, end, column, bounds, k, relaxed, strict_children):
    """Cut a region along one column."""
    if spans.scale[column] > 0.0:
        return _cut_numeric(points, order, start, end, column, k, relaxed)
    return _cut_children(trees, points, order, part, start, end, column, bounds[0], bounds[1], k, strict_children)


@njit(cache=True)
def _cut_numeric(points, order, start, end, column, k, relaxed):
    """Two halves at the median; equal values stay together unless relaxed."""
    size = end - start
    values = np.empty(size)
    for i in range(size):
        values[i] = points[order[start + i], column]
    by_value = np.argsort(values, kind="mergesort")
    middle = size // 2
    if not relaxed:
        middle = _boundary(values, by_value, middle, k)
    if middle < k or size - middle < k:
        return [end]
    rows = order[start:end].copy()
    for i in range(size):
        order[start + i] = rows[by_value[i]]
    return [start + middle, end]


@njit(cache=True)
def _boundary(values, by_value, middle, k):
    """The boundary between different values nearest the middle that leaves k on both sides; 0 if there is none."""
    size = values.shape[0]
    median = values[by_value[middle]]
    before = middle
    while before > 0 and values[by_value[before - 1]] == median:
        before -= 1
    after = middle
    while after < size and values[by_value[after]] == median:
        after += 1
    before_fits = before >= k and size - before >= k
    after_fits = after >= k and size - after >= k
    if before_fits and (not after_fits or middle - before <= after - middle):
        return before
    return after if after_fits else 0


@njit(cache=True)
def _cut_children(trees, points, order, part, start, end, column, low, high, k, strict_children):
    """One part per child of the region's node; children with fewer than k rows are pooled, or prevent the cut."""
    at = trees.offset[column]
    node = int(low)
    while trees.last[at + node] < high:
        node = trees.parent[at + node]
    sizes = _child_slots(trees, at, node, points, order, part, start, end, column)
    target, parts = _pool_small(sizes, k, strict_children)
    if parts < 2:
        return [end]
    return _scatter(order, part, target, parts, start, end)


@njit(cache=True)
def _child_slots(trees, at, node, points, order, part, start, end, column):
    """For every row the slot (first leaf) of the child of ``node`` it lies under, and the size of each slot."""
    base = trees.first[at + node]
    leaves = trees.last[at + node] - base + 1
    slot_of_leaf = np.full(leaves, -1, dtype=np.int64)
    sizes = np.zeros(leaves, dtype=np.int64)
    for i in range(start, end):
        leaf = int(points[order[i], column])
        if slot_of_leaf[leaf - base] < 0:
            child = leaf
            while trees.parent[at + child] != node:
                child = trees.parent[at + child]
            slot_of_leaf[leaf - base] = trees.first[at + child] - base
        slot = slot_of_leaf[leaf - base]
        part[i] = slot
        sizes[slot] += 1
    return sizes


@njit(cache=True)
def _pool_small(sizes, k, strict_children):
    """Part number of every slot: small children form one part of their own, or join the smallest large child."""
    target = np.full(sizes.shape[0], -1, dtype=np.int64)
    parts, pooled, smallest = 0, 0, -1
    for slot in range(sizes.shape[0]):
        if sizes[slot] >= k:
            target[slot] = parts
            parts += 1
            if smallest < 0 or sizes[slot] < sizes[smallest]:
                smallest = slot
        elif sizes[slot] > 0:
            pooled += sizes[slot]
    if pooled == 0:
        return target, parts
    if strict_children or smallest < 0:
        return target, 0
    pool = parts if pooled >= k else target[smallest]
    parts += pooled >= k
    for slot in range(sizes.shape[0]):
        if 0 < sizes[slot] < k:
            target[slot] = pool
    return target, parts


@njit(cache=True)
def _scatter(order, part, target, parts, start, end):
    """Counting sort of order[start:end] by part; the ends of the parts."""
    fill = np.zeros(parts + 1, dtype=np.int64)
    for i in range(start, end):
        fill[target[part[i]] + 1] += 1
    fill = np.cumsum(fill)
    ends = [start + fill[p + 1] for p in range(parts)]
    rows = order[start:end].copy()
    slots_of = part[start:end].copy()
    for i in range(end - start):
        p = target[slots_of[i]]
        order[start + fill[p]] = rows[i]
        fill[p] += 1
    return ends
