r"""Discrete Laplace noise: how it is drawn, whole or in shares, and how far a sum of it reaches.

A count plus noise with P(x) proportional to exp(-|x| / scale) is differentially private with epsilon = sensitivity /
scale (Ghosh, Roughgarden & Sundararajan 2012). Whole noise is drawn by OpenDP.

A *share* is the difference of two independent Pólya variables with

.. math:: P(j) = \binom{j + r - 1}{j} (1 - p)^r p^j, \quad r = 1/m, \quad p = e^{-1/s}

and *m* shares sum to discrete Laplace noise of scale *s* (Goryczka & Xiong 2017; the noise is infinitely divisible).
Where *n > m* nodes add a share, the sum has n/m times the variance, and any *m* of them suffice. Shares are drawn by
comparing random words with a table of tail probabilities. The table has the precision of doubles, so that the
distribution of a share is off by less than 2^-45.

The randomness comes from the operating system; a seed is for experiments only, as whoever knows it can subtract the
noise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fedanon.errors import ConfigError
from fedanon.privacy.accounting.noise import SecureNoise
from fedanon.types import CountArray, WordArray

#: far above the error of the transforms, far below any failure probability worth stating
ROUNDING = 1e-12
#: tail probabilities below 2^-WORD_BITS are never drawn
WORD_BITS = 64
#: given a number, so many words of 64 random bits
RandomWords = Callable[[int], WordArray]


# ---- whole noise ---------------------------------------------------------------------------------


def check_opendp() -> None:
    """Raise ConfigError unless OpenDP is installed."""
    try:
        import opendp.prelude  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("Counts with noise need OpenDP: pip install 'fedanon[dp]'.") from None


def add_noise(counts: CountArray, scale: float) -> CountArray:
    """Counts with independent discrete Laplace noise from OpenDP's sampler."""
    check_opendp()
    return SecureNoise().discrete_laplace(counts, scale)


# ---- shares of noise -----------------------------------------------------------------------------


def secure_words(count: int) -> WordArray:
    """Words that nobody can predict."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def seeded_words(*seed: int) -> RandomWords:
    """Words derived from a seed, for experiments that can be repeated."""
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**WORD_BITS, count, dtype=np.uint64)


def add_noise_shares(counts: CountArray, scale: float, honest: int, words: RandomWords = secure_words) -> CountArray:
    """Counts with one share each of the noise that the shares of ``honest`` nodes make up."""
    return np.asarray(counts + _polya(len(counts), scale, honest, words) - _polya(len(counts), scale, honest, words))


def _polya(count: int, scale: float, honest: int, words: RandomWords) -> CountArray:
    """Independent Pólya variables: how many tails are larger than a random word."""
    tails = _tails(scale, honest)
    return np.asarray(len(tails) - np.searchsorted(tails, words(count), side="right"), dtype=np.int64)


@lru_cache(maxsize=16)
def _tails(scale: float, honest: int) -> WordArray:
    """P(X > j) as words, smallest first.

    Tails are summed from the far end, where nothing is lost to rounding; p^j bounds P(j), as r is at most 1.
    """
    p, r = np.exp(-1.0 / scale), 1.0 / honest
    longest = int(np.ceil(scale * (WORD_BITS * np.log(2.0) - np.log(-np.expm1(-1.0 / scale))))) + 1
    j = np.arange(longest, dtype=np.float64)
    chance = (-np.expm1(-1.0 / scale)) ** r * np.cumprod(np.append(1.0, p * (j + r) / (j + 1)))
    tails = np.cumsum(chance[:0:-1]) * 2.0**WORD_BITS  # of j = longest - 1, ..., 0
    return tails.astype(np.uint64)


# ---- how far sums of noise reach -----------------------------------------------------------------


@lru_cache(maxsize=65536)
def upper_quantile(scale: float, draws: float, log_tail: float) -> int:
    """The smallest x that a sum of ``draws`` independent noises exceeds with probability at most exp(log_tail).

    Where nodes add shares, ``draws`` need not be whole. Exact as far as double precision allows, and by Chernoff's
    bound beyond.
    """
    if draws == 0:
        return 0
    bound = _chernoff(scale, draws, log_tail)
    return bound if log_tail < np.log(1000 * ROUNDING) else min(bound, _exact(scale, draws, float(np.exp(log_tail))))


def _exact(scale: float, draws: float, tail: float) -> int:
    """By the distribution of the sum: the inverse transform of a power of the characteristic function of one noise.

    That function is (1 - p)^2 / (1 - 2 p cos(w) + p^2) with p = exp(-1 / scale); what rounding may hide is added to
    every tail.
    """
    p = np.exp(-1.0 / scale)
    # so long that what wraps around is smaller than rounding
    length = 2 ** int(np.ceil(np.log2(4 * _chernoff(scale, draws, np.log(ROUNDING)) + 16)))
    frequency = 2 * np.pi * np.arange(length // 2 + 1) / length
    one = np.expm1(-1.0 / scale) ** 2 / (1 - 2 * p * np.cos(frequency) + p * p)
    chance = np.fft.irfft(one**draws, length)[: length // 2]
    beyond = np.append(np.cumsum(chance[::-1])[::-1][1:], 0.0) + ROUNDING
    return int(np.argmax(beyond <= tail))


def _chernoff(scale: float, draws: float, log_tail: float) -> int:
    """P(S >= x) <= exp(-t x) ((1 - p)^2 / ((1 - p e^t) (1 - p e^-t)))^draws for every 0 < t < 1 / scale."""
    p = np.exp(-1.0 / scale)
    t = np.linspace(0.001, 0.999, 999) / scale
    log_moment = draws * (2 * np.log1p(-p) - np.log1p(-p * np.exp(t)) - np.log1p(-p * np.exp(-t)))
    return max(int(np.ceil(((log_moment - log_tail) / t).min())) - 1, 0)
