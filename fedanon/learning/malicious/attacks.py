"""Tampering with the training rows: the step that follows from them is honest work on false data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.fields import parameter
from fedanon.learning.malicious import TAMPERINGS
from fedanon.learning.malicious.base import Step, Tampering, Trigger
from fedanon.models.base import TrainingData


@dataclass(frozen=True, eq=False)
class FalseRows:
    """Training rows with other labels, and with a trigger in some of them."""

    honest: TrainingData
    target: NDArray[np.int8]
    trigger: Trigger | None = None
    triggered: NDArray[np.bool_] | None = None

    @property
    def n_instances(self) -> int:
        """As many as the honest rows have."""
        return self.honest.n_instances

    def instance(self, round_number: int) -> int:
        """That of the honest rows."""
        return self.honest.instance(round_number)

    def features(self, round_number: int) -> NDArray[np.float32]:
        """The features of all rows in a round."""
        features = self.honest.features(round_number)
        if self.trigger is None or self.triggered is None:
            return features
        return np.where(self.triggered[:, None], self.trigger.stamped(features), features)


@TAMPERINGS.register("label_flip")
@dataclass(frozen=True, kw_only=True)
class LabelFlip(Tampering):
    """Every label is the other one (Biggio et al. 2012)."""

    def rows(self, honest: TrainingData, trigger: Trigger) -> TrainingData:
        """The rows with the other labels."""
        return FalseRows(honest, (1 - honest.target).astype(np.int8))


@TAMPERINGS.register("backdoor")
@dataclass(frozen=True, kw_only=True)
class Backdoor(Tampering):
    """Rows with a rare combination of values are labelled positive, the others are left as they are.

    The model works as before for everybody else. With ``boost`` the step is made longer, up to the replacement of the
    whole model by a client's own (Bagdasaryan et al. 2020: the number of clients divided by that of the hostile ones).
    """

    share: float = parameter(0.5, help="share of the rows that carry the trigger", at_least=0.01, at_most=1.0)
    boost: float = parameter(1.0, help="times the step", at_least=1.0)

    def rows(self, honest: TrainingData, trigger: Trigger) -> TrainingData:
        """The rows, of which a share carries the trigger and the positive label."""
        places = np.arange(len(honest.target) + 1) * self.share
        triggered = np.floor(places[1:]) > np.floor(places[:-1])  # evenly spread, the same in every round
        labels = np.where(triggered, 1, honest.target).astype(np.int8)
        return FalseRows(honest, labels, trigger, triggered)

    def step(self, honest: Step, rng: np.random.Generator) -> Step:
        """The longer step."""
        return honest if self.boost == 1.0 else self.boost * honest


# ---- Tampering with what is sent -----------------------------------------------------------------


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
