"""The accountant against dp-accounting, against integrals, and against itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedanon.errors import InfeasibleError
from fedanon.privacy.accounting.accountant import (
    GaussianRounds,
    epsilon_of,
    gaussian_delta,
    gaussian_deviation,
    gaussian_epsilon,
    noise_multiplier_for,
)

# noise multiplier, rate, rounds, delta -> epsilon by dp-accounting 0.6.0 (Google), RdpAccountant with the orders of
# ORDERS: RdpAccountant(orders=...).compose(PoissonSampledDpEvent(q, GaussianDpEvent(z)), rounds).get_epsilon(delta)
SAMPLED = [
    (1.1, 0.01, 1000, 1e-5, 1.7252908180449444),
    (1.0, 0.1, 100, 1e-5, 7.972921510380539),
    (2.0, 0.3, 50, 1e-6, 6.684216784691268),
    (1.1, 256 / 60000, 60 * 234, 1e-5, 2.5948176752357233),
]


def rounds(multiplier: float, rate: float = 1.0, count: int = 1) -> list[GaussianRounds]:
    return [GaussianRounds(noise_multiplier=multiplier, rate=rate, count=count)]


@pytest.mark.parametrize(("multiplier", "rate", "count", "delta", "epsilon"), SAMPLED)
def test_sampled_rounds_agree_with_dp_accounting(
    multiplier: float, rate: float, count: int, delta: float, epsilon: float
) -> None:
    assert epsilon_of(rounds(multiplier, rate, count), delta) == pytest.approx(epsilon, rel=1e-12)


def test_rounds_without_sampling_agree_with_dp_accounting() -> None:
    # its PLDAccountant, which is exact up to its grid; its RdpAccountant says 14.18
    assert epsilon_of(rounds(4.0, count=100), 1e-5) == pytest.approx(13.206712241909575, rel=1e-9)


def test_the_analytic_gaussian_needs_less_noise_than_the_classic_bound() -> None:
    # Balle & Wang 2018: against sqrt(2 ln(1.25 / delta)) / epsilon of Dwork & Roth 2014
    assert gaussian_deviation(1.0, 1e-5) == pytest.approx(3.730631634816462, rel=1e-9)
    assert gaussian_deviation(1.0, 1e-5) < math.sqrt(2 * math.log(1.25e5))


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.1), (1.0, 1.0), (2.0, 5.0), (0.05, 0.0), (5.0, 3.0)])
def test_delta_is_the_integral_of_what_is_beyond_epsilon(mu: float, epsilon: float) -> None:
    x = np.linspace(-40, 40 + mu, 200_001)
    beyond = np.maximum(stats.norm.pdf(x, mu) - np.exp(epsilon) * stats.norm.pdf(x), 0)
    assert gaussian_delta(mu, epsilon) == pytest.approx(float(np.trapezoid(beyond, x)), rel=1e-6)


@pytest.mark.parametrize(("multiplier", "rate", "delta"), [(1.0, 0.1, 1e-5), (2.0, 0.5, 1e-6), (0.8, 0.02, 1e-4)])
def test_a_sampled_round_keeps_its_epsilon_by_integration(multiplier: float, rate: float, delta: float) -> None:
    epsilon = epsilon_of(rounds(multiplier, rate), delta)
    x = np.linspace(-30, 31, 200_001)
    without = stats.norm.pdf(x, 0, multiplier)
    with_one = (1 - rate) * without + rate * stats.norm.pdf(x, 1, multiplier)
    for p, q in ((with_one, without), (without, with_one)):
        assert np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), x) <= delta
    assert epsilon < epsilon_of(rounds(multiplier), delta)  # sampling helps


@given(epsilon=st.floats(0.05, 20), delta=st.sampled_from([1e-3, 1e-5, 1e-9]), count=st.integers(1, 500))
def test_the_noise_found_keeps_the_budget_and_less_does_not(epsilon: float, delta: float, count: int) -> None:
    multiplier = noise_multiplier_for(epsilon, delta, count=count)
    assert epsilon_of(rounds(multiplier, count=count), delta) <= epsilon * (1 + 1e-9)
    assert epsilon_of(rounds(0.999 * multiplier, count=count), delta) > epsilon


def test_the_noise_of_sampled_rounds_keeps_the_budget() -> None:
    multiplier = noise_multiplier_for(2.0, 1e-5, count=100, rate=0.2)
    assert epsilon_of(rounds(multiplier, 0.2, 100), 1e-5) == pytest.approx(2.0, rel=1e-6)
    assert multiplier < noise_multiplier_for(2.0, 1e-5, count=100)


def test_what_is_spent_leaves_less_for_later_rounds() -> None:
    plan = noise_multiplier_for(1.0, 1e-5, count=100)
    spent = rounds(plan, count=40)
    assert noise_multiplier_for(1.0, 1e-5, count=60, spent=spent) == pytest.approx(plan, rel=1e-6)
    assert noise_multiplier_for(1.0, 1e-5, count=61, spent=spent) > plan
    with pytest.raises(InfeasibleError, match=r"epsilon 1\.\d+ of 1 at delta 1e-05; no round is left"):
        noise_multiplier_for(1.0, 1e-5, count=1, spent=rounds(plan, count=101))


def test_nothing_costs_nothing() -> None:
    assert epsilon_of([], 1e-5) == 0.0
    assert gaussian_epsilon(1e-9, 1e-5) == 0.0
    assert epsilon_of(rounds(1.0, rate=0.0, count=5), 1e-5) == 0.0
