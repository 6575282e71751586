r"""Shares of one noise: each hospital draws one, and their sum is discrete Laplace noise of the federation.

The difference of two independent Pólya variables with

.. math:: P(j) = \binom{j + r - 1}{j} (1 - p)^r p^j, \quad r = 1/m, \quad p = e^{-1/s}

is a share of which *m* sum to discrete Laplace noise of scale *s* (Goryczka & Xiong 2017; the noise is infinitely
divisible). Where *n > m* hospitals add a share, the sum has n/m times the variance, and any *m* of them are enough.

Words from the operating system's generator are turned into shares by a table of the tails. The table has the precision
of doubles, so that a share's distribution is off by less than 2^-45.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Words = NDArray[np.uint64]
#: tails below 2^-WORD_BITS are never drawn
WORD_BITS = 64
#: so many words of 64 random bits
RandomWords = Callable[[int], Words]


def secure_words(count: int) -> Words:
    """Words nobody can foretell."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def seeded_words(*seed: int) -> RandomWords:
    """Words that follow from a seed: for experiments that are made again; who knows the seed takes the noise off."""
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**WORD_BITS, count, dtype=np.uint64)


def add_shares(counts: Counts, scale: float, honest: int, words: RandomWords = secure_words) -> Counts:
    """Counts with one share each of the noise that ``honest`` hospitals draw together."""
    return np.asarray(counts + _polya(len(counts), scale, honest, words) - _polya(len(counts), scale, honest, words))


def _polya(count: int, scale: float, honest: int, words: RandomWords) -> Counts:
    """Independent Pólya variables: how many tails are larger than a random word."""
    tails = _tails(scale, honest)
    return np.asarray(len(tails) - np.searchsorted(tails, words(count), side="right"), dtype=np.int64)


@lru_cache(maxsize=16)
def _tails(scale: float, honest: int) -> Words:
    """P(X > j) in words, smallest first.

    Tails are sums from the far end, where nothing is lost to rounding; p^j bounds P(j), as r is at most 1.
    """
    p, r = np.exp(-1.0 / scale), 1.0 / honest
    longest = int(np.ceil(scale * (WORD_BITS * np.log(2.0) - np.log(-np.expm1(-1.0 / scale))))) + 1
    j = np.arange(longest, dtype=np.float64)
    chance = (-np.expm1(-1.0 / scale)) ** r * np.cumprod(np.append(1.0, p * (j + r) / (j + 1)))
    tails = np.cumsum(chance[:0:-1]) * 2.0**WORD_BITS  # of j = longest - 1, ..., 0
    return tails.astype(np.uint64)
