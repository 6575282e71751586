# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Growing a class of people, each of whom needs a box of their own to be held."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.streams._buffer import _loss, box_loss


@njit(cache=True)
def grow(space, low, high, seed, allowed, size):
    """The seed and the allowed people whose boxes enlarge the common one least, ``size`` in all.

    Returns their places, the common box and its loss; no places if there are not enough.
    """
    n, q = low.shape
    members = np.empty(size, dtype=np.int64)
    taken = np.zeros(n, dtype=np.bool_)
    least, most = low[seed].copy(), high[seed].copy()
    members[0], taken[seed] = seed, True
    for held in range(1, size):
        best, found = np.inf, -1
        for j in range(n):
            if taken[j] or not allowed[j]:
                continue
            total = 0.0
            for c in range(q):
                total += _loss(space, c, min(least[c], low[j, c]), max(most[c], high[j, c]))
                if total >= best:
                    break
            if total < best:
                best, found = total, j
        if found < 0:
            return members[:0], least, most, np.inf
        members[held], taken[found] = found, True
        for c in range(q):
            least[c] = min(least[c], low[found, c])
            most[c] = max(most[c], high[found, c])
    return members, least, most, box_loss(space, least, most)
