r"""Accountant: what rounds of Gaussian noise cost in epsilon and delta, and how much noise a budget needs.

A round adds noise of standard deviation :math:`\sigma` times the sensitivity to a sum over a random sample, to which
each unit belongs with probability ``rate`` independently of the others (Poisson sampling). The unit of privacy is one
contribution, present or replaced by zero; the number of units is public.

Without sampling, rounds compose to one Gaussian mechanism with :math:`\mu = \sqrt{\sum_t \sigma_t^{-2}}` (Dong, Roth &
Su 2022), whose curve is exact. With sampling, the Rényi divergences of Mironov, Talwar & Zhang (2019) are added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedanon.errors import InfeasibleError
from fedanon.fields import check_fields, parameter
from fedanon.types import FloatArray

#: whole orders of the Rényi divergence, for which its closed form is exact
ORDERS = np.concatenate([np.arange(2, 65), [80, 96, 128, 192, 256, 384, 512]])
#: no search looks beyond
LARGEST = 1e6
STEPS = 100


@dataclass(frozen=True, kw_only=True)
class GaussianRounds:
    """Rounds of the same noise.

    Parameters
    ----------
    noise_multiplier : standard deviation of the noise, in units of the sensitivity.
    rate : chance of a unit to be in a round's sample.
    count : number of rounds.
    """

    noise_multiplier: float = parameter(help="standard deviation of the noise over the sensitivity", at_least=1e-9)
    rate: float = parameter(1.0, help="chance of a unit to be sampled", at_least=0, at_most=1)
    count: int = parameter(1, help="rounds", at_least=0)

    def __post_init__(self) -> None:
        check_fields(self)


# ---- one Gaussian mechanism ----------------------------------------------------------------------


def gaussian_delta(mu: float, epsilon: float) -> float:
    r"""The delta of Gaussian noise whose deviation is the sensitivity over ``mu``; exact.

    .. math:: \delta(\varepsilon) = \Phi(\tfrac{\mu}{2} - \tfrac{\varepsilon}{\mu})
              - e^\varepsilon \Phi(-\tfrac{\mu}{2} - \tfrac{\varepsilon}{\mu})

    (Balle & Wang 2018, theorem 8).
    """
    if mu == 0:
        return 0.0
    gain = _log_normal_cdf(mu / 2 - epsilon / mu)
    loss = epsilon + _log_normal_cdf(-mu / 2 - epsilon / mu)
    return max(-math.exp(gain) * math.expm1(loss - gain), 0.0) if loss < gain else 0.0


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of Gaussian noise whose deviation is the sensitivity over ``mu``, at ``delta``."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if gaussian_delta(mu, LARGEST) > delta:
        return math.inf
    return _least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta)


def gaussian_deviation(epsilon: float, delta: float) -> float:
    """The least deviation of Gaussian noise, in units of the sensitivity, that keeps ``epsilon`` and ``delta``."""
    return _least(lambda deviation: gaussian_delta(1 / deviation, epsilon) <= delta)


def _log_normal_cdf(x: float) -> float:
    if x > -30:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2)))
    # the asymptotic series of the tail, whose next term is below 2e-10 here
    series = 1 - x**-2 + 3 * x**-4 - 15 * x**-6
    return -x * x / 2 + math.log(series) - math.log(-x * math.sqrt(2 * math.pi))


# ---- rounds --------------------------------------------------------------------------------------


def epsilon_of(rounds: Iterable[GaussianRounds], delta: float) -> float:
    """The epsilon at ``delta`` of all rounds together; infinite beyond :data:`LARGEST`."""
    done = _asked(rounds)
    # what holds without the luck of not being sampled holds with it
    return min(gaussian_epsilon(_plain_mu(done), delta), _sampled_epsilon(done, delta))


def keeps(rounds: Iterable[GaussianRounds], epsilon: float, delta: float) -> bool:
    """Whether all rounds together keep a budget: the same as by :func:`epsilon_of`, without a search."""
    done = _asked(rounds)
    return gaussian_delta(_plain_mu(done), epsilon) <= delta or _sampled_epsilon(done, delta) <= epsilon


def _asked(rounds: Iterable[GaussianRounds]) -> list[GaussianRounds]:
    return [entry for entry in rounds if entry.count and entry.rate]


def _plain_mu(rounds: Sequence[GaussianRounds]) -> float:
    return math.sqrt(sum(entry.count / entry.noise_multiplier**2 for entry in rounds))


def _sampled_epsilon(rounds: Sequence[GaussianRounds], delta: float) -> float:
    if all(entry.rate == 1 for entry in rounds):
        return math.inf  # the plain curve is exact
    total = sum((entry.count * _renyi(entry.noise_multiplier, entry.rate) for entry in rounds), np.zeros(len(ORDERS)))
    return _epsilon_of_renyi(total, delta)


def noise_multiplier_for(
    epsilon: float, delta: float, *, count: int, rate: float = 1.0, spent: Sequence[GaussianRounds] = ()
) -> float:
    """The least noise multiplier with which ``count`` more rounds keep the budget, after those of ``spent``."""
    before = epsilon_of(spent, delta)
    if before >= epsilon:
        raise InfeasibleError(
            f"The privacy budget is spent: epsilon {before:.4g} of {epsilon:g} at delta {delta:g}; no round is left."
        )

    def kept(multiplier: float) -> bool:
        more = GaussianRounds(noise_multiplier=multiplier, rate=rate, count=count)
        return keeps((*spent, more), epsilon, delta)

    return _least(kept)


@lru_cache(maxsize=4096)
def _renyi(noise_multiplier: float, rate: float) -> FloatArray:
    r"""Rényi divergences of one round at all :data:`ORDERS`.

    .. math:: \frac{1}{\alpha - 1} \log \sum_{i=0}^{\alpha} \binom{\alpha}{i} (1 - q)^{\alpha - i} q^i
              e^{i (i - 1) / 2 \sigma^2}

    (Mironov, Talwar & Zhang 2019, section 3.3).
    """
    if rate == 1:
        return np.asarray(ORDERS / (2 * noise_multiplier**2))
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, ORDERS.max() + 1)))])
    values = []
    for order in ORDERS.tolist():
        i = np.arange(order + 1)
        chosen = factorial[order] - factorial[i] - factorial[order - i]
        terms = chosen + (order - i) * math.log1p(-rate) + i * math.log(rate) + i * (i - 1) / (2 * noise_multiplier**2)
        values.append(float(np.logaddexp.reduce(terms)) / (order - 1))
    return np.array(values)


def _epsilon_of_renyi(divergence: FloatArray, delta: float) -> float:
    r""":math:`\varepsilon = \rho_\alpha + \log(1 - 1/\alpha) - \log(\delta\alpha) / (\alpha - 1)`, the least of all.

    (Canonne, Kamath & Steinke 2020, proposition 12).
    """
    return max(float(np.min(divergence + np.log1p(-1 / ORDERS) - np.log(delta * ORDERS) / (ORDERS - 1))), 0.0)


def _least(kept: Callable[[float], bool]) -> float:
    """The least number that is ``kept``, if all larger ones are; what is returned always is."""
    low, high = 1e-6, 1.0
    while not kept(high):
        low, high = high, 2 * high
        if high > LARGEST:
            raise InfeasibleError("No noise of a reasonable size keeps so small a privacy budget.")
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if kept(middle) else (middle, high)
        if high <= low * (1 + 1e-12):
            break
    return high
