"""Model: what a federation trains. Parameters are lists of arrays; a model object holds settings only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon import parameters as settings
from fedanon.data.release import Release
from fedanon.models.encoding import Encoding
from fedanon.models.training_data import Draws, LeafWeights, all_exact
from fedanon.parameters import parameter

Parameters = list[NDArray[Any]]
Rng = np.random.Generator

INSTANCES = "published cells as expected features ('leaves') or as values drawn from them ('draws')"


class TrainingData(Protocol):
    """A node's training rows as features, of which there may be several instances used in turn."""

    @property
    def n_instances(self) -> int:
        """How many instances of the features there are."""

    @property
    def target(self) -> NDArray[np.int8]:
        """0 or 1 for every row."""

    def instance(self, round_number: int) -> int:
        """Which instance a round uses, 0..n_instances-1; the features of an instance never change."""

    def features(self, round_number: int) -> NDArray[np.float32]:
        """The features of all rows in a round."""


@dataclass
class LocalState:
    """What a node keeps between the rounds of one run, so that a round costs only what is new; never leaves the node.

    An empty state is always right: a model works out again what it does not find.
    """

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

    instances: Literal["leaves", "draws"] = parameter("leaves", help=INSTANCES)
    n_draws: int = parameter(10, help="how many times the records are drawn; the rounds take turns", at_least=1)

    def __post_init__(self) -> None:
        settings.check(self)

    def training_data(self, release: Release, encoding: Encoding, seed: int) -> TrainingData:
        """The published rows in the form this model learns best from."""
        if self.instances == "leaves" or all_exact(release):
            return LeafWeights(release, encoding)
        return Draws(release, encoding, seed, self.n_draws)

    @abstractmethod
    def initial(self, width: int) -> Parameters:
        """Parameters before the first round, for ``width`` features."""

    @abstractmethod
    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """One round of local training from the global parameters."""

    @abstractmethod
    def predict_proba(
        self, parameters: Parameters, features: NDArray[np.float32], *, state: LocalState | None = None
    ) -> NDArray[np.float64]:
        """Probability of the positive class; a ``state`` kept for the same rows saves work in the next round."""
