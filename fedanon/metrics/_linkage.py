# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Nearest originals of every released record: one walk over sorted rows that jumps past hopeless prefixes."""

from __future__ import annotations

import numpy as np
from numba import njit

#: relative difference below which two sums of the same terms in another order count as equal
SLACK = 1e-9


@njit(cache=True)
def nearest_originals(distance, rest, bound, codes, shared, skip, weight, first_row):
    """For every released record: the number of nearest original rows, the first, and the largest distance of any.

    Parameters
    ----------
    distance : one row per released record: its distance to every code of every column, the columns end to end.
    rest : rest[r, c] is the least that the columns c, c + 1, ... can add to a distance of record r.
    bound : an upper bound of each record's least distance.
    codes : the distinct originals in lexicographic order, as positions in a row of ``distance``.
    shared : how many leading columns an original has in common with the one before.
    skip : skip[i, c] is the next original that differs from original i within the columns 0..c.
    weight, first_row : number of rows equal to each distinct original, and the first of them.

    A prefix is given up once its distance plus ``rest`` exceeds the best so far. The worst case is O(released x
    distinct); with a bound from the record's own originals only a small share of them is looked at.
    """
    released = distance.shape[0]
    m, q = codes.shape
    limits = np.empty(released)
    near = np.zeros(released, dtype=np.int64)
    first = np.zeros(released, dtype=np.int64)
    partial = np.zeros(q + 1)
    for r in range(released):
        best = bound[r]
        limit = _limit(best)
        i = 0
        while i < m:
            c = shared[i]
            while c < q:
                partial[c + 1] = partial[c] + distance[r, codes[i, c]]
                if partial[c + 1] + rest[r, c + 1] > limit:
                    break
                c += 1
            if c < q:
                i = skip[i, c]
                continue
            if _limit(partial[q]) < best:
                near[r] = 0
            if near[r] == 0 or first_row[i] < first[r]:
                first[r] = first_row[i]
            near[r] += weight[i]
            if partial[q] < best:
                best = partial[q]
                limit = _limit(best)
            i += 1
        limits[r] = limit
    return near, first, limits


@njit(cache=True, inline="always")
def _limit(best):
    """The largest distance that is tied with ``best``."""
    return best * (1.0 + SLACK) + 1e-15
