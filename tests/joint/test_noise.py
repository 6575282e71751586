"""Noise: how far sums of it reach, what the failure probability is divided among, and what a node spends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.fields import build
from fedanon.joint import JOINT_METHODS
from fedanon.joint.disclosure import SecureNoisy
from fedanon.joint.methods.mondrian import FederatedMondrian
from fedanon.joint.noise import add_noise, add_noise_shares, seeded_words, upper_quantile
from fedanon.joint.queries import FINAL


def tail(scale: float, draws: int, beyond: int) -> float:
    """P(sum > beyond) by plain convolution."""
    p = math.exp(-1 / scale)
    one = (1 - p) / (1 + p) * p ** np.abs(np.arange(-600, 601))
    total = np.ones(1)
    for _ in range(draws):
        total = np.convolve(total, one)
    return float(total[len(total) // 2 + beyond + 1 :].sum())


@pytest.mark.parametrize("scale", [0.3, 1.0, 6.0])
@pytest.mark.parametrize("draws", [1, 3, 10])
@pytest.mark.parametrize("allowed", [0.1, 1e-3, 1e-7])
def test_the_reach_is_the_smallest_that_is_safe(scale: float, draws: int, allowed: float) -> None:
    found = upper_quantile(scale, draws, math.log(allowed))
    assert tail(scale, draws, found) <= allowed
    assert found == 0 or tail(scale, draws, found - 1) > allowed * (1 - 1e-4)


def test_beyond_double_precision_the_reach_is_a_bound() -> None:
    """One noise: P(X > x) = p^(x + 1) / (1 + p), p = exp(-1 / scale)."""
    found = upper_quantile(2.0, 1, math.log(1e-40))
    exact = math.log(1e40) * 2
    assert exact - 2 <= found <= 1.2 * exact


@pytest.mark.parametrize("name", list(JOINT_METHODS))
def test_the_shares_of_all_steps_sum_to_epsilon(name: str) -> None:
    method = JOINT_METHODS[name](k=5, counts="dp", epsilon=0.7)
    spent = [8 / method.scale(step, 8) for step in method.shares]
    assert sum(spent) == pytest.approx(0.7)
    assert FINAL in method.shares
    for step in (9, FINAL + 1):
        with pytest.raises(UpdateRejectedError, match="budget has no share for this query"):
            method.scale(step)


def test_k_local_is_at_most_k() -> None:
    with pytest.raises(ConfigError, match="k_local=6 is larger than k=5"):
        FederatedMondrian(k=5, k_local=6)


def test_opendp_draws_the_noise_that_is_reckoned_with() -> None:
    pytest.importorskip("opendp", reason="OpenDP is in the extra 'dp'")
    drawn = add_noise(np.full(20_000, 100, dtype=np.int64), 3.0) - 100
    p = math.exp(-1 / 3.0)
    assert abs(drawn.mean()) < 0.2
    assert drawn.var() == pytest.approx(2 * p / (1 - p) ** 2, rel=0.1)


# ---- noise drawn once for the federation --------------------------------------------------------


def discrete_laplace(scale: float, x: np.ndarray) -> np.ndarray:
    p = math.exp(-1 / scale)
    return (1 - p) / (1 + p) * p ** np.abs(x)


@pytest.mark.parametrize(("scale", "honest"), [(0.5, 2), (1.25, 1), (1.25, 6), (7.0, 3), (40.0, 10)])
def test_shares_sum_to_the_noise_they_claim(scale: float, honest: int) -> None:
    """Chi-square of 50,000 sums against the discrete Laplace distribution, at a level of one in a million."""
    from scipy.stats import chi2

    words = seeded_words(11)
    n = 50_000
    drawn = sum(add_noise_shares(np.zeros(n, dtype=np.int64), scale, honest, words) for _ in range(honest))
    reach_ = int(scale * 4) + 1
    x = np.arange(-reach_, reach_ + 1)
    expected = n * discrete_laplace(scale, x)
    observed = np.array([(drawn == v).sum() for v in x])
    # what lies beyond is one more cell
    expected, observed = np.append(expected, n - expected.sum()), np.append(observed, n - observed.sum())
    enough = expected > 5
    statistic = ((observed - expected)[enough] ** 2 / expected[enough]).sum()
    assert statistic < chi2.ppf(1 - 1e-6, enough.sum() - 1)


def test_more_nodes_than_are_needed_add_more_noise() -> None:
    """Ten shares of which six are enough: 10/6 of the variance, and the quantile reckons with that."""
    rule, words = SecureNoisy(1.0, 6), seeded_words(12)
    drawn = sum(rule.disclose(np.zeros(100_000, dtype=np.int64), 2.0, 10, words) for _ in range(10))
    p = math.exp(-1 / 2.0)
    assert rule.draws(10) == 10 / 6
    assert drawn.var() == pytest.approx(10 / 6 * 2 * p / (1 - p) ** 2, rel=0.03)
    assert 0.2e-2 < (drawn > upper_quantile(2.0, rule.draws(10), math.log(1e-2))).mean() < 1e-2


def test_by_default_more_than_half_are_needed() -> None:
    assert [SecureNoisy(1.0, 0).enough(n) for n in (2, 3, 9, 10)] == [2, 2, 5, 6]


def test_words_come_from_the_operating_system() -> None:
    nothing = np.zeros(2000, dtype=np.int64)
    assert not np.array_equal(add_noise_shares(nothing, 5.0, 1), add_noise_shares(nothing, 5.0, 1))


def test_the_former_name_of_the_failure_probability_is_accepted() -> None:
    with pytest.warns(FutureWarning, match="failure_probability"):
        method = build(FederatedMondrian, {"k": 5, "doubt": "0.05"})
    assert method.failure_probability == 0.05
