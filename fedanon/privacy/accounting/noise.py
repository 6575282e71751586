"""Where noise comes from: OpenDP and the randomness of the system, or, for experiments alone, a seed.

Who knows the seed knows the noise and can take it off, so seeded noise promises nothing. OpenDP draws from the discrete
Laplace and Gaussian distributions on a grid of floating-point numbers: the low bits of a noisy number tell nothing
about the true one, as they do where a float is drawn by inversion (Mironov 2012).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError
from fedanon.types import CountArray, FloatArray

Randomness = Literal["secure", "seeded"]

#: the grid of Gaussian noise, as a power of two below its deviation: coarse enough to be fast
GRID_BITS = 40
#: more noise than the formula asks for, by this share: covers the rounding to the grid and of the sums that get noise
SLACK = 1e-9


class Noise(ABC):
    """Adds independent noise of one scale to every number."""

    @abstractmethod
    def laplace(self, values: FloatArray, scale: float) -> FloatArray:
        """Values with noise of density proportional to exp(-|x| / scale)."""

    @abstractmethod
    def discrete_laplace(self, counts: CountArray, scale: float) -> CountArray:
        """Counts with whole noise of probability proportional to exp(-|x| / scale).

        It hides one unit like continuous noise of that scale, and varies less: by a third where the scale is 1/2.
        """

    @abstractmethod
    def gaussian(self, values: FloatArray, deviation: float) -> FloatArray:
        """Values with normal noise of that standard deviation."""

    @abstractmethod
    def chosen(self, count: int, rate: float) -> NDArray[np.bool_]:
        """Which of ``count`` units are in a Poisson sample."""


class SecureNoise(Noise):
    """By OpenDP; never seeded."""

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ModuleNotFoundError:
            raise ConfigError("Noise for differential privacy needs OpenDP: pip install 'fedanon[dp]'.") from None
        dp.enable_features("contrib")

    def laplace(self, values: FloatArray, scale: float) -> FloatArray:
        """Discrete Laplace on the grid of all floats."""
        import opendp.prelude as dp

        space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=values.size), dp.l1_distance(T=float)
        noisy = (space >> dp.m.then_laplace(scale=scale))(values.ravel().tolist())
        return np.array(noisy).reshape(values.shape)

    def discrete_laplace(self, counts: CountArray, scale: float) -> CountArray:
        """Discrete Laplace on the whole numbers."""
        import opendp.prelude as dp

        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        noisy = (space >> dp.m.then_laplace(scale=scale))(counts.ravel().tolist())
        return np.array(noisy, dtype=np.int64).reshape(counts.shape)

    def gaussian(self, values: FloatArray, deviation: float) -> FloatArray:
        """Discrete Gaussian on a grid far finer than its deviation."""
        import opendp.prelude as dp

        space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=values.size), dp.l2_distance(T=float)
        grid = math.floor(math.log2(deviation)) - GRID_BITS
        noisy = (space >> dp.m.then_gaussian(scale=deviation, k=grid))(values.ravel().tolist())
        return np.array(noisy).reshape(values.shape)

    def chosen(self, count: int, rate: float) -> NDArray[np.bool_]:
        """By the system's own generator: a sample that could be foretold would hide nobody."""
        import secrets

        return np.array([secrets.randbits(53) < rate * 2**53 for _ in range(count)], dtype=bool)


class SeededNoise(Noise):
    """By numpy, from a generator; the same every time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def laplace(self, values: FloatArray, scale: float) -> FloatArray:
        """Continuous Laplace noise."""
        return values + self._rng.laplace(0.0, scale, values.shape)

    def discrete_laplace(self, counts: CountArray, scale: float) -> CountArray:
        """The difference of two geometric variables."""
        one, other = self._rng.geometric(-np.expm1(-1.0 / scale), (2, *counts.shape))
        return np.asarray(counts + one - other, dtype=np.int64)

    def gaussian(self, values: FloatArray, deviation: float) -> FloatArray:
        """Continuous normal noise."""
        return values + self._rng.normal(0.0, deviation, values.shape)

    def chosen(self, count: int, rate: float) -> NDArray[np.bool_]:
        """By the generator."""
        return np.asarray(self._rng.random(count) < rate)


def noise_source(randomness: Randomness, rng: np.random.Generator) -> Noise:
    """The source by name; ``rng`` is used by the seeded one only."""
    return SecureNoise() if randomness == "secure" else SeededNoise(rng)
