"""Tampering with the training rows: the step that follows from them is honest work on false data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.federated.hostile import TAMPERINGS
from fedanon.federated.hostile.base import Step, Tampering
from fedanon.federated.hostile.trigger import Trigger
from fedanon.models.base import TrainingData
from fedanon.parameters import parameter


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
