"""Discrete Laplace noise: drawn by OpenDP, and how far a sum of such noise reaches.

A count plus noise with P(x) proportional to exp(-|x| / scale) is differentially private with epsilon = sensitivity /
scale (Ghosh, Roughgarden & Sundararajan 2012). Noise is never seeded: who knows a seed can take the noise off. Shares
of one noise, of which every hospital draws one, are in :mod:`.noise_shares`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError

Counts = NDArray[np.int64]
#: far above the error of the transforms, far below any doubt worth stating
ROUNDING = 1e-12


def check_opendp() -> None:
    """Raise ConfigError unless OpenDP is installed."""
    try:
        import opendp.prelude  # noqa: F401
    except ModuleNotFoundError:
        raise ConfigError("Counts with noise need OpenDP: pip install 'fedanon[dp]'.") from None


def add_noise(counts: Counts, scale: float) -> Counts:
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
