"""Discrete Laplace noise: drawn by OpenDP, and how far a sum of such noise reaches.

A count plus noise with P(x) proportional to exp(-|x| / scale) is differentially private with epsilon = sensitivity /
scale (Ghosh, Roughgarden & Sundararajan 2012). Noise is never seeded: who knows a seed can take the noise off. Shares
of one noise, of which every hospital draws one, are in :mod:`.noise_shares`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError
from fedanon.types import CountArray

#: far above the error of the transforms, far below any doubt worth stating
ROUNDING = 1e-12


def check_opendp() -> None:
    """Raise ConfigError unless OpenDP is installed."""
    try:
        import opendp.prelude  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("Counts with noise need OpenDP: pip install 'fedanon[dp]'.") from None


def add_noise(counts: CountArray, scale: float) -> CountArray:
    """Counts with independent discrete Laplace noise from OpenDP's sampler."""
    check_opendp()
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array((space >> dp.m.then_laplace(scale=scale))(counts.tolist()), dtype=np.int64)


@lru_cache(maxsize=65536)
def reach(scale: float, draws: float, log_doubt: float) -> int:
    """The smallest x that a sum of ``draws`` independent noises exceeds with a probability of at most exp(log_doubt).

    Shares of noise make ``draws`` a fraction: the noise is infinitely divisible. Exact where double precision can tell,
    and by Chernoff's bound beyond.
    """
    if draws == 0:
        return 0
    bound = _chernoff(scale, draws, log_doubt)
    return bound if log_doubt < np.log(1000 * ROUNDING) else min(bound, _exact(scale, draws, float(np.exp(log_doubt))))


def _exact(scale: float, draws: float, doubt: float) -> int:
    """By the distribution of the sum, the inverse transform of a power of the characteristic function of one noise.

    That is (1 - p)^2 / (1 - 2 p cos(w) + p^2) with p = exp(-1 / scale); what rounding may hide is added to every tail.
    """
    p = np.exp(-1.0 / scale)
    # so long that what is folded back into view is smaller than rounding
    length = 2 ** int(np.ceil(np.log2(4 * _chernoff(scale, draws, np.log(ROUNDING)) + 16)))
    frequency = 2 * np.pi * np.arange(length // 2 + 1) / length
    one = np.expm1(-1.0 / scale) ** 2 / (1 - 2 * p * np.cos(frequency) + p * p)
    chance = np.fft.irfft(one**draws, length)[: length // 2]
    beyond = np.append(np.cumsum(chance[::-1])[::-1][1:], 0.0) + ROUNDING
    return int(np.argmax(beyond <= doubt))


def _chernoff(scale: float, draws: float, log_doubt: float) -> int:
    """P(S >= x) <= exp(-t x) ((1 - p)^2 / ((1 - p e^t) (1 - p e^-t)))^draws for every 0 < t < 1 / scale."""
    p = np.exp(-1.0 / scale)
    t = np.linspace(0.001, 0.999, 999) / scale
    log_moment = draws * (2 * np.log1p(-p) - np.log1p(-p * np.exp(t)) - np.log1p(-p * np.exp(-t)))
    return max(int(np.ceil(((log_moment - log_doubt) / t).min())) - 1, 0)


# ---- Shares of one noise -------------------------------------------------------------------------
#
# The difference of two independent Pólya variables with .. math:: P(j) = \binom{j + r - 1}{j} (1 - p)^r p^j, \quad r
# = 1/m, \quad p = e^{-1/s} is a share of which *m* sum to discrete Laplace noise of scale *s* (Goryczka & Xiong 2017;
# the noise is infinitely divisible). Where *n > m* hospitals add a share, the sum has n/m times the variance, and any
# *m* of them are enough. Words from the operating system's generator are turned into shares by a table of the tails.
# The table has the precision of doubles, so that a share's distribution is off by less than 2^-45.


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


def add_shares(counts: CountArray, scale: float, honest: int, words: RandomWords = secure_words) -> CountArray:
    """Counts with one share each of the noise that ``honest`` hospitals draw together."""
    return np.asarray(counts + _polya(len(counts), scale, honest, words) - _polya(len(counts), scale, honest, words))


def _polya(count: int, scale: float, honest: int, words: RandomWords) -> CountArray:
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
