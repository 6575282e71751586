# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Kernels of the search for few suppressed cells by sdcMicro's count, in which '*' agrees with anything."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def _apart(a, b, most):
    """In how many keys two rows differ, both saying something; more than ``most`` need not be counted."""
    count = 0
    for c in range(len(a)):
        if a[c] >= 0 and b[c] >= 0 and a[c] != b[c]:
            count += 1
            if count > most:
                break
    return count


@njit(cache=True, inline="always")
def _counts(a, b):
    """Whether row b counts for row a: they agree, but a row that says nothing does not count for a complete one."""
    if _apart(a, b, 0) > 0:
        return False
    complete, silent = True, True
    for c in range(len(a)):
        complete = complete and a[c] >= 0
        silent = silent and b[c] < 0
    return not (complete and silent and len(a) > 1)


@njit(cache=True)
def suppress_in_turn(rows, problems, k, waits):
    """Suppress one key of every row of ``problems`` in turn: the last in which a nearest row differs.

    With ``waits`` a row is left alone that counts k rows by the time it is its turn.
    """
    n, width = rows.shape
    differs = np.zeros(width, np.bool_)
    for row in problems:
        agreeing, least = 0, width
        for other in range(n):
            apart = _apart(rows[row], rows[other], least)
            if 0 < apart < least:
                least = apart
            if apart == 0 and _counts(rows[row], rows[other]):
                agreeing += 1
        if waits and agreeing >= k:
            continue
        differs[:] = False
        for other in range(n):
            if _apart(rows[row], rows[other], least) == least:
                for c in range(width):
                    if rows[row, c] >= 0 and rows[other, c] >= 0 and rows[row, c] != rows[other, c]:
                        differs[c] = True
        # where all rows agree, those that say nothing do not count for a complete one: any key will do
        anywhere = not differs.any()
        for c in range(width - 1, -1, -1):
            if differs[c] or (anywhere and rows[row, c] >= 0):
                rows[row, c] = -1
                break


@njit(cache=True)
def restore(rows, before, counts, k):
    """Give cells their value again wherever every row still counts k; the most important keys first.

    ``counts`` are those of the rows as they are.
    """
    n, width = rows.shape
    changed = np.zeros(n, np.int64)
    for c in range(width):
        for row in range(n):
            if rows[row, c] >= 0 or before[row, c] < 0:
                continue
            own, sound = 0, True
            for other in range(n):
                changed[other] = 0
                if _apart(rows[other], rows[row], 0) > 0:
                    continue  # a value more does not make them agree
                had = _counts(rows[other], rows[row])
                rows[row, c] = before[row, c]
                has = _counts(rows[other], rows[row])
                own += _counts(rows[row], rows[other])
                rows[row, c] = -1
                changed[other] = np.int64(has) - np.int64(had)
                if other != row and counts[other] + changed[other] < k:
                    sound = False
                    break
            if sound and own >= k:
                rows[row, c] = before[row, c]
                for other in range(n):
                    counts[other] += changed[other]
                counts[row] = own
