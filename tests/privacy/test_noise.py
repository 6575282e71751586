"""The noise is what it is said to be.

Seeded noise is tested with fixed seeds. Noise of the system differs every time: its tests fail by chance once in a
million runs. Each test also rejects a noise that is a little off, so that it can fail at all.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedanon.privacy.accounting.noise import Noise, SecureNoise, SeededNoise, noise_source

DRAWS = 4_000
CHANCE = 1e-6
SCALE = 3.0


def sources() -> list[Noise]:
    return [SecureNoise(), SeededNoise(np.random.default_rng(5))]


@pytest.mark.parametrize("source", sources(), ids=["secure", "seeded"])
def test_laplace_noise(source: Noise) -> None:
    noise = source.laplace(np.full(DRAWS, 10.0), SCALE) - 10.0
    assert stats.kstest(noise, stats.laplace(scale=SCALE).cdf).pvalue > CHANCE
    assert stats.kstest(noise, stats.laplace(scale=1.5 * SCALE).cdf).pvalue < CHANCE


@pytest.mark.parametrize("source", sources(), ids=["secure", "seeded"])
def test_discrete_laplace_noise(source: Noise) -> None:
    noise = source.discrete_laplace(np.full((DRAWS // 2, 2), 10), SCALE) - 10
    assert noise.shape == (DRAWS // 2, 2)
    assert noise.dtype == np.int64
    for scale, fits in ((SCALE, True), (1.3 * SCALE, False)):
        law = stats.dlaplace(1 / scale)
        seen = np.bincount(np.clip(noise.ravel(), -9, 9) + 9, minlength=19)
        expected = DRAWS * np.concatenate([[law.cdf(-9)], law.pmf(np.arange(-8, 9)), [law.sf(8)]])
        assert (stats.chisquare(seen, expected).pvalue > CHANCE) == fits


@pytest.mark.parametrize("source", sources(), ids=["secure", "seeded"])
def test_normal_noise(source: Noise) -> None:
    noise = source.gaussian(np.full(DRAWS, -4.0), SCALE) + 4.0
    assert stats.kstest(noise, stats.norm(scale=SCALE).cdf).pvalue > CHANCE
    assert stats.kstest(noise, stats.norm(scale=1.4 * SCALE).cdf).pvalue < CHANCE


@pytest.mark.parametrize("source", sources(), ids=["secure", "seeded"])
def test_poisson_samples(source: Noise) -> None:
    chosen = source.chosen(20_000, 0.3)
    assert stats.binomtest(int(chosen.sum()), len(chosen), 0.3).pvalue > CHANCE
    assert stats.binomtest(int(chosen.sum()), len(chosen), 0.33).pvalue < CHANCE
    assert source.chosen(50, 1.0).all()


def test_noise_of_numbers_is_independent() -> None:
    noise = SecureNoise().gaussian(np.zeros((DRAWS // 2, 2)), 1.0)
    assert noise.shape == (DRAWS // 2, 2)
    assert stats.pearsonr(noise[:, 0], noise[:, 1]).pvalue > CHANCE


def test_small_and_large_scales() -> None:
    source = SecureNoise()
    for scale in (1e-9, 1e6):
        noise = source.gaussian(np.zeros(400), scale) / scale
        assert stats.kstest(noise, "norm").pvalue > CHANCE


def test_only_seeded_noise_can_be_drawn_again() -> None:
    zeros = np.zeros(20)
    seeded = [noise_source("seeded", np.random.default_rng(1)).laplace(zeros, 1.0) for _ in range(2)]
    secure = [noise_source("secure", np.random.default_rng(1)).laplace(zeros, 1.0) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    assert (secure[0] != secure[1]).all()
