"""Tampering: what a hostile client changes, in its rows before training or in its step after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon import parameters
from fedanon.federated.hostile.trigger import Trigger
from fedanon.models.base import TrainingData

Step = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Tampering:
    """Base of all kinds; each overrides one of the two methods or both."""

    def __post_init__(self) -> None:
        parameters.check(self)

    def rows(self, honest: TrainingData, trigger: Trigger) -> TrainingData:
        """The rows the client trains on; the same for the same honest rows."""
        return honest

    def step(self, honest: Step, rng: np.random.Generator) -> Step:
        """What is sent in place of the way from the global arrays to the trained ones, or of a tree's leaf weights."""
        return honest
