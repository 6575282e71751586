"""Multiplicative noise: zeros and signs, means and medians."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.errors import InfeasibleError
from tests.sdc.methods.drawn import original, published, table_of

N = 40_000
X = np.where(np.arange(N) % 4 == 0, 0.0, np.random.default_rng(2024).lognormal(1, 0.5, N))
WITH_ZEROS, POSITIVE = table_of({"a": X}), table_of({"a": X[X > 0]})


def test_factors_have_mean_one_and_the_given_spread_and_zeros_stay() -> None:
    y = published(WITH_ZEROS, "multiplicative_noise", sd=0.2)[:, 0]
    np.testing.assert_array_equal(y[X == 0], 0)
    factor = y[X > 0] / X[X > 0]
    assert factor.mean() == pytest.approx(1, abs=5 * 0.2 / np.sqrt(len(factor)))
    assert factor.std() == pytest.approx(0.2, rel=5 / np.sqrt(len(factor)))
    assert y.var() == pytest.approx(X.var() + 0.2**2 * np.square(X).mean(), rel=0.02)


def test_logarithmic_noise_stays_positive_and_keeps_medians() -> None:
    x, y = original(POSITIVE)[:, 0], published(POSITIVE, "log_multiplicative_noise", sd=0.5)[:, 0]
    assert y.min() > 0
    ratio = np.log(y / x)
    assert ratio.mean() == pytest.approx(0, abs=5 * 0.5 / np.sqrt(len(x)))
    assert ratio.std() == pytest.approx(0.5, rel=5 / np.sqrt(len(x)))
    assert (y / x).mean() == pytest.approx(np.exp(0.5**2 / 2), rel=0.02)


def test_logarithms_need_positive_values() -> None:
    with pytest.raises(InfeasibleError, match=rf"column 'a' has 0 negative values and {N // 4} zeros\. Set keep_zeros"):
        published(WITH_ZEROS, "log_multiplicative_noise")
    kept = published(WITH_ZEROS, "log_multiplicative_noise", keep_zeros=True)[:, 0]
    np.testing.assert_array_equal(kept == 0, X == 0)
    with pytest.raises(InfeasibleError, match=r"column 'b' has 2 negative values and 1 zeros\.$"):
        published(table_of({"a": [1, 2, 3, 4], "b": [-1, 0, -2, 3]}), "log_multiplicative_noise", keep_zeros=True)
    with pytest.raises(InfeasibleError, match="beyond the largest numbers in the column 'a'"):
        published(POSITIVE, "log_multiplicative_noise", sd=1000.0)
