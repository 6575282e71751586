# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Kernels of the search for few suppressed cells by sdcMicro's count, in which '*' agrees with anything.

Every row at risk is compared with all others. Sets of rows are bits of 64-bit words, so that one instruction compares
64 rows in one key, and the keys in which rows differ are added up bit by bit (bit-sliced counters). The cost is
(rows at risk) x (rows / 64) x keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from fedanon.types import AnyArray, IntArray

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


class Index(NamedTuple):
    """Which rows have which value, by key, as they were before the search.

    Parameters
    ----------
    order : rows sorted by the values of each key; one column per key.
    starts : where each value begins in ``order``; one row per key.
    heavy : place in ``bits`` of a value that many rows have, -1 of others; one row per key.
    bits : the rows of each such value.
    """

    order: IntArray
    starts: IntArray
    heavy: IntArray
    bits: AnyArray


def index_rows(codes: IntArray) -> Index:
    """Index rows whose codes are from 0, with -1 for a cell that says nothing."""
    n, width = codes.shape
    values = int(codes.max(initial=0)) + 1
    order = np.argsort(codes, axis=0, kind="stable").astype(np.int32)
    starts = np.empty((width, values + 1), dtype=np.int32)
    for c in range(width):
        starts[c] = np.searchsorted(codes[order[:, c], c], np.arange(values + 1))
    # at most 64 values of a key are as frequent as that: their bits take no more room than the table
    frequent = np.diff(starts, axis=1) > n // 64
    heavy = np.where(frequent, np.cumsum(frequent).reshape(frequent.shape) - 1, -1).astype(np.int32)
    bits = np.zeros((int(frequent.sum()), (n + 63) // 64), dtype=np.uint64)
    for c, value in np.argwhere(frequent):
        bits[heavy[c, value]] = _packed(codes[:, c] == value)
    return Index(order, starts, heavy, bits)


def _packed(chosen: AnyArray) -> AnyArray:
    """Return a row's bits per word, the first row being the lowest bit."""
    octets = np.zeros((len(chosen) + 63) // 64 * 8, dtype=np.uint8)
    packed = np.packbits(chosen, bitorder="little")
    octets[: len(packed)] = packed
    return octets.view("<u8").astype(np.uint64)


def silent_bits(rows: IntArray) -> AnyArray:
    """Return the bits of the rows that say nothing in each key; one row of words per key."""
    return np.array([_packed(column < 0) for column in rows.T])


def all_bits(n: int) -> AnyArray:
    """Return the bits of ``n`` rows, all of them."""
    return _packed(np.ones(n, dtype=bool))


@njit(cache=True, inline="always")
def _ones(word):
    """Count the bits that are set."""
    word = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True)
def _like(c, value, index, silent, found):
    """Set the bits of the rows that agree with ``value`` in a key."""
    order, starts, heavy, bits = index
    if heavy[c, value] >= 0:
        for w in range(found.shape[0]):
            found[w] = bits[heavy[c, value], w] | silent[c, w]
        return
    found[:] = silent[c]
    for i in range(starts[c, value], starts[c, value + 1]):
        row = order[i, c]
        found[row >> 6] |= _ONE << np.uint64(row & 63)


@njit(cache=True)
def _differing(cells, index, silent, valid, differs, planes):
    """Set, by key, the bits of the rows that differ from ``cells``; add them up in ``planes``, lowest digit first."""
    planes[:] = _ZERO
    for c in range(len(cells)):
        if cells[c] < 0:
            differs[c] = _ZERO
            continue
        _like(c, cells[c], index, silent, differs[c])
        for w in range(len(valid)):
            carry = ~differs[c, w] & valid[w]
            differs[c, w] = carry
            for digit in range(planes.shape[0]):
                if carry == _ZERO:
                    break
                planes[digit, w], carry = planes[digit, w] ^ carry, planes[digit, w] & carry


@njit(cache=True, inline="always")
def _equal_word(planes, w, number, valid):
    """Return the rows of a word whose sum is ``number``."""
    word = valid[w]
    for digit in range(planes.shape[0]):
        word &= planes[digit, w] if (number >> digit) & 1 else ~planes[digit, w]
    return word


@njit(cache=True, inline="always")
def _is_complete(cells):
    return cells.min() >= 0


@njit(cache=True)
def _nearest_differences(planes, differs, valid, width, found):
    """Say in which keys the nearest rows that differ at all do so, in ``found``."""
    found[:] = False
    for apart in range(1, width + 1):
        near = False
        for w in range(len(valid)):
            word = _equal_word(planes, w, apart, valid)
            if word != _ZERO:
                near = True
                for c in range(width):
                    found[c] |= (word & differs[c, w]) != _ZERO
        if near:
            return


@njit(cache=True)
def _all_silent(silent, w):
    word = _ALL
    for c in range(silent.shape[0]):
        word &= silent[c, w]
    return word


@njit(cache=True)
def suppress_in_turn(rows, problems, k, waits, index, silent, valid):
    """Suppress one key of every row of ``problems`` in turn: the last in which a nearest row differs.

    With ``waits`` a row is left alone that counts k rows by the time it is its turn. ``silent`` holds the bits of the
    rows that say nothing in each key, and is kept up to date.
    """
    width, words = silent.shape
    differs = np.empty((width, words), np.uint64)
    planes = np.empty((_digits(width), words), np.uint64)
    keys = np.zeros(width, np.bool_)
    for row in problems:
        _differing(rows[row], index, silent, valid, differs, planes)
        if waits:
            skips = width > 1 and _is_complete(rows[row])
            agreeing = 0
            for w in range(words):
                word = _equal_word(planes, w, 0, valid)
                agreeing += _ones(word & ~_all_silent(silent, w) if skips else word)
            if agreeing >= k:
                continue
        _nearest_differences(planes, differs, valid, width, keys)
        # where all rows agree, those that say nothing do not count for a complete one: any key will do
        anywhere = not keys.any()
        for c in range(width - 1, -1, -1):
            if keys[c] or (anywhere and rows[row, c] >= 0):
                rows[row, c] = -1
                silent[c, row >> 6] |= _ONE << np.uint64(row & 63)
                break


@njit(cache=True)
def _digits(width):
    digits = 1
    while (1 << digits) <= width:
        digits += 1
    return digits


@njit(cache=True)
def restore(rows, before, counts, k, index, silent, valid):
    """Give cells their value again wherever every row still counts k; the most important keys first.

    ``counts`` are those of the rows as they are, at least k each. A value more may part the row from some that agreed
    with it: none of them may count k rows only. A row that said nothing counts for complete rows from then on.
    """
    n, width = rows.shape
    words = len(valid)
    differs = np.empty((width, words), np.uint64)
    planes = np.empty((_digits(width), words), np.uint64)
    like, complete, tight = np.empty(words, np.uint64), np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    for row in range(n):
        bit = _ONE << np.uint64(row & 63)
        if _is_complete(rows[row]):
            complete[row >> 6] |= bit
        if counts[row] <= k:
            tight[row >> 6] |= bit
    for c in range(width):
        for row in range(n):
            if rows[row, c] >= 0 or before[row, c] < 0:
                continue
            _differing(rows[row], index, silent, valid, differs, planes)
            _like(c, before[row, c], index, silent, like)
            was_silent = width > 1 and rows[row].max() < 0
            completes = True
            for other in range(width):
                completes = completes and (other == c or rows[row, other] >= 0)
            skips = completes and width > 1
            own, sound = 0, True
            for w in range(words):
                agreed = _equal_word(planes, w, 0, valid)
                word = agreed & like[w]
                own += _ones(word & ~_all_silent(silent, w) if skips else word)
                # a complete row did not count one that said nothing
                lost = agreed & ~like[w] & (~complete[w] if was_silent else _ALL)
                if lost & tight[w]:
                    sound = False
                    break
            if not sound or own < k:
                continue
            _settle(row, c, before[row, c], own, k, rows, counts, (planes, like, complete, tight, silent, valid))


@njit(cache=True)
def _settle(row, c, value, own, k, rows, counts, sets):
    """Put a value back, and count anew."""
    planes, like, complete, tight, silent, valid = sets
    was_silent = len(rows[row]) > 1 and rows[row].max() < 0
    rows[row, c] = value
    silent[c, row >> 6] &= ~(_ONE << np.uint64(row & 63))
    for w in range(len(valid)):
        agreed = _equal_word(planes, w, 0, valid)
        lost = agreed & ~like[w] & (~complete[w] if was_silent else _ALL)
        gained = agreed & like[w] & complete[w] if was_silent else _ZERO
        changed = lost | gained
        while changed != _ZERO:
            lowest = changed & (~changed + _ONE)
            changed ^= lowest
            other = (w << 6) + _ones(lowest - _ONE)
            counts[other] += 1 if gained & lowest else -1
            tight[w] = tight[w] | lowest if counts[other] <= k else tight[w] & ~lowest
    counts[row] = own
    bit = _ONE << np.uint64(row & 63)
    tight[row >> 6] = tight[row >> 6] | bit if own <= k else tight[row >> 6] & ~bit
    if _is_complete(rows[row]):
        complete[row >> 6] |= bit
