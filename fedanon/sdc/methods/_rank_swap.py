# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Partners for rank swapping: every rank with a random free one a few ranks above it."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.anneal._kernel import below

#: blind draws before the free ranks are counted
TRIES = 32


@njit(cache=True)
def swap_partners(n, window, state):
    """Partner of every rank, its own number if it has none; partners are at most ``window`` ranks apart.

    Ranks are taken from the lowest up; each that is free draws uniformly among the free ones in its window. O(n) draws.
    """
    partner = np.arange(n)
    for rank in range(n):
        reach = min(window, n - 1 - rank)
        if partner[rank] == rank and reach > 0:
            other = _draw_free(partner, rank, reach, state)
            partner[rank], partner[other] = other, rank
    return partner


@njit(cache=True)
def _draw_free(partner, rank, reach, state):
    """A free rank among rank + 1 .. rank + reach; ``rank`` itself if there is none."""
    for _ in range(TRIES):
        other = rank + 1 + below(state, reach)
        if partner[other] == other:
            return other
    chosen, free = rank, 0
    for other in range(rank + 1, rank + 1 + reach):
        if partner[other] == other:
            free += 1
            if below(state, free) == 0:
                chosen = other
    return chosen
