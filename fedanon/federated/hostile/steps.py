"""Tampering with what is sent: not a number, turned round, blown up, or noise (Blanchard et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.federated.hostile import TAMPERINGS
from fedanon.federated.hostile.base import Step, Tampering
from fedanon.parameters import parameter


@TAMPERINGS.register("nan")
@dataclass(frozen=True, kw_only=True)
class NotANumber(Tampering):
    """Every number is NaN: a mean with one of them is lost."""

    def step(self, honest: Step, rng: np.random.Generator) -> Step:
        """NaN throughout."""
        return np.full_like(honest, np.nan)


@TAMPERINGS.register("sign_flip")
@dataclass(frozen=True, kw_only=True)
class SignFlip(Tampering):
    """The step in the other direction, and longer, so that few clients outweigh many."""

    factor: float = parameter(10.0, help="times the honest step", at_least=0.0)

    def step(self, honest: Step, rng: np.random.Generator) -> Step:
        """The negated step."""
        return -self.factor * honest


@TAMPERINGS.register("scale")
@dataclass(frozen=True, kw_only=True)
class Scale(Tampering):
    """The honest direction, far too long: training diverges."""

    factor: float = parameter(100.0, help="times the honest step", at_least=0.0)

    def step(self, honest: Step, rng: np.random.Generator) -> Step:
        """The longer step."""
        return self.factor * honest


@TAMPERINGS.register("gaussian")
@dataclass(frozen=True, kw_only=True)
class Gaussian(Tampering):
    """Noise on the step, by default three times its size: too short for the server's bound on steps to see."""

    factor: float = parameter(3.0, help="standard deviation, times the root mean square of the step", at_least=0.0)

    def step(self, honest: Step, rng: np.random.Generator) -> Step:
        """The step and the noise."""
        size = float(np.sqrt(np.mean(np.square(honest, dtype=np.float64))))
        return (honest + self.factor * size * rng.standard_normal(honest.shape)).astype(honest.dtype)
