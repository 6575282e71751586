# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Minimal sample uniques: every smallest set of keys whose values occur in one record only.

Sets of keys are visited in the order of their bit masks, as one counts in binary, so that all subsets come before a
set. Along the way a partition of the records is kept for every prefix, and only its classes that still matter: those of
at least two distinct rows, one of which occurs once. A unique row leaves the walk, since it is unique by all supersets
too; a class without candidates leaves it, since nothing in it can become unique.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: 64-bit words for the sets of keys of all rows: 128 MB
MOST_WORDS = 2**24


@njit(cache=True)
def _split(codes, single, column, rows, starts, n_classes, new_rows, new_starts, unique, scratch):
    """Divide the classes of a partition by one more key.

    Returns the number of new classes that matter, and how many rows were put into ``unique``. ``scratch`` holds, for
    every code, how many rows have it, how many of these occur once, and where the next one goes; zero between calls.
    """
    count, candidates, place = scratch[0], scratch[1], scratch[2]
    touched = scratch[3]
    made, filled, n_unique = 0, 0, 0
    for group in range(n_classes):
        n_touched = 0
        for i in range(starts[group], starts[group + 1]):
            code = codes[rows[i], column]
            if code < 0:
                continue
            if count[code] == 0:
                touched[n_touched] = code
                n_touched += 1
            count[code] += 1
            candidates[code] += single[rows[i]]
        for j in range(n_touched):
            code = touched[j]
            place[code] = -1
            if count[code] > 1 and candidates[code] > 0:
                place[code] = filled
                new_starts[made] = filled
                made += 1
                filled += count[code]
        for i in range(starts[group], starts[group + 1]):
            code = codes[rows[i], column]
            if code < 0:
                continue
            if place[code] >= 0:
                new_rows[place[code]] = rows[i]
                place[code] += 1
            elif count[code] == 1 and single[rows[i]]:
                unique[n_unique] = rows[i]
                n_unique += 1
        for j in range(n_touched):
            count[touched[j]] = 0
            candidates[touched[j]] = 0
    new_starts[made] = filled
    return made, n_unique


@njit(cache=True)
def _unique_by_part(mask, row, left):
    """Say whether a row is unique by a part of ``mask`` that lacks one key, by the sets at which it left the walk.

    A part is unique if the row left at it or at one of its prefixes, its highest keys. Prefixes that ``mask`` shares
    are known not to be: the row was still there.
    """
    above, below = mask & (mask - 1), mask & -mask  # keys before and from the one left out; the lowest need not be
    while above:
        omitted = above & -above
        above ^= omitted
        prefix = above
        rest = below
        while rest:
            highest = rest
            while highest & (highest - 1):
                highest &= highest - 1
            rest ^= highest
            prefix |= highest
            if (left[row, prefix >> 6] >> np.uint64(prefix & 63)) & np.uint64(1):
                return True
        below |= omitted
    return False


@njit(cache=True)
def _holds_a_found_one(mask, row, last, before, masks):
    """Say whether a set already found for the row lies inside ``mask``."""
    entry = last[row]
    while entry >= 0:
        if masks[entry] & mask == masks[entry]:
            return True
        entry = before[entry]
    return False


@njit(cache=True)
def _longer(array):
    """Return the array with room for twice as many entries."""
    longer = np.empty(2 * array.shape[0], array.dtype)
    longer[: array.shape[0]] = array
    return longer


@njit(cache=True)
def minimal_uniques(codes, single, n_codes, max_size):
    """Find rows and bit masks of all minimal sample uniques of at most ``max_size`` keys.

    ``codes`` are the distinct rows, codes below 0 are missing and part of no unique; ``single`` says which rows occur
    once; ``n_codes`` is the largest number of codes of any key. One entry of the result is one unique of one row.
    """
    n, n_keys = codes.shape
    deepest = min(max_size, n_keys)
    rows = np.empty((deepest + 1, n), np.int32)
    starts = np.empty((deepest + 1, n // 2 + 2), np.int32)  # a class that matters has two rows at least
    n_classes = np.zeros(deepest + 1, np.int64)
    rows[0] = np.arange(n)
    starts[0, 0], starts[0, 1], n_classes[0] = 0, n, 1
    scratch, unique = np.zeros((4, n_codes + 1), np.int32), np.empty(n, np.int32)
    # what a row was unique by: a bit for every set of keys where memory allows, else the list of what was found
    words = ((1 << min(n_keys, 40)) + 63) // 64
    by_bits = n * words <= MOST_WORDS
    left = np.zeros((n, words) if by_bits else (1, 1), np.uint64)
    last, before = np.full(n, -1, np.int64), np.empty(1024, np.int64)
    masks, owners, found = np.empty(1024, np.int64), np.empty(1024, np.int32), 0
    # at every depth: the key to add next, the key to stop at (keys of a set fall with the depth), and the set so far
    walk = np.zeros((3, deepest + 1), np.int64)
    column, stop, mask = walk[0], walk[1], walk[2]
    stop[0] = n_keys
    depth = 0
    while depth >= 0:
        if depth == deepest or n_classes[depth] == 0 or column[depth] == stop[depth]:
            depth -= 1
            continue
        added = column[depth]
        column[depth] += 1
        here = mask[depth] | (np.int64(1) << added)
        made, n_unique = _split(
            codes, single, added, rows[depth], starts[depth], n_classes[depth],
            rows[depth + 1], starts[depth + 1], unique, scratch,
        )  # fmt: skip
        for row in unique[:n_unique]:
            if by_bits:
                left[row, here >> 6] |= np.uint64(1) << np.uint64(here & 63)
                smaller = _unique_by_part(here, row, left)
            else:
                smaller = _holds_a_found_one(here, row, last, before, masks)
            if smaller:
                continue
            if found == masks.shape[0]:
                before, masks, owners = _longer(before), _longer(masks), _longer(owners)
            before[found], masks[found], owners[found] = last[row], here, row
            last[row] = found
            found += 1
        depth += 1
        n_classes[depth], column[depth], stop[depth], mask[depth] = made, 0, added, here
    return owners[:found], masks[:found]
