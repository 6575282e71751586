"""Noise: how far sums of it reach, what the doubt is divided among, and what a client spends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.federated.together.mondrian import FederatedMondrian
from fedanon.federated.together.noise import add_noise, reach
from fedanon.federated.together.private_growth import Budget
from fedanon.federated.together.questions import FINAL


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
@pytest.mark.parametrize("doubt", [0.1, 1e-3, 1e-7])
def test_the_reach_is_the_smallest_that_is_safe(scale: float, draws: int, doubt: float) -> None:
    found = reach(scale, draws, math.log(doubt))
    assert tail(scale, draws, found) <= doubt
    assert found == 0 or tail(scale, draws, found - 1) > doubt * (1 - 1e-4)


def test_beyond_double_precision_the_reach_is_a_bound() -> None:
    """One noise: P(X > x) = p^(x + 1) / (1 + p), p = exp(-1 / scale)."""
    found = reach(2.0, 1, math.log(1e-40))
    exact = math.log(1e40) * 2
    assert exact - 2 <= found <= 1.2 * exact


def test_the_shares_of_all_steps_sum_to_epsilon() -> None:
    budget = Budget(0.7)
    spent = [8 / budget.scale(1, 8), 8 / budget.scale(2, 8), 1 / budget.scale(FINAL)]
    assert sum(spent) == pytest.approx(0.7)
    with pytest.raises(UpdateRejectedError, match="not one the budget foresees"):
        budget.scale(3)


def test_k_local_is_at_most_k() -> None:
    with pytest.raises(ConfigError, match="k_local=6 is larger than k=5"):
        FederatedMondrian(k=5, k_local=6)


def test_opendp_draws_the_noise_that_is_reckoned_with() -> None:
    pytest.importorskip("opendp", reason="OpenDP is in the extra 'dp'")
    drawn = add_noise(np.full(20_000, 100, dtype=np.int64), 3.0) - 100
    p = math.exp(-1 / 3.0)
    assert abs(drawn.mean()) < 0.2
    assert drawn.var() == pytest.approx(2 * p / (1 - p) ** 2, rel=0.1)
