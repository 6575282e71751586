"""Model: what a federation trains. Parameters are lists of arrays; a model object holds settings only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Parameters = list[NDArray[Any]]
Rng = np.random.Generator


class TrainingData(Protocol):
    """A node's training rows as features, possibly instantiated anew in every round."""

    target: NDArray[np.int8]

    def features(self, round_number: int) -> NDArray[np.float32]:
        """The features of all rows in a round."""


@dataclass
class LocalState:
    """What a node keeps between rounds so that a round costs only what is new; never leaves the node."""

    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """What one round of local training yields."""

    parameters: Parameters
    n_examples: int


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """A binary classifier trained in rounds."""

    name: ClassVar[str]
    #: how the server combines updates: the weighted mean of arrays, or the union of trees
    aggregation: ClassVar[Literal["mean", "trees"]]

    @abstractmethod
    def initial(self, width: int) -> Parameters:
        """Parameters before the first round, for ``width`` features."""

    @abstractmethod
    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """One round of local training from the global parameters."""

    @abstractmethod
    def predict_proba(self, parameters: Parameters, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probability of the positive class."""
