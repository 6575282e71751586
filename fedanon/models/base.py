"""Model: what a federation trains, and the training data it learns from.

Parameters are lists of arrays; a model object holds settings only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np

from fedanon.data.cells import Cells, Intervals, Numbers
from fedanon.data.hierarchy import MISSING
from fedanon.errors import ConfigError
from fedanon.fields import check_fields, parameter
from fedanon.models.encoding import Encoding
from fedanon.models.likely_values import LikelyValues
from fedanon.models.outcome import BINARY, Outcome, OutcomeKind
from fedanon.models.target import target
from fedanon.privacy.accounting.noise import Noise
from fedanon.release.release import Release
from fedanon.types import AnyArray, FeatureArray, FloatArray, Rng, TargetArray

Parameters = list[AnyArray]

CELL_VALUES = "which values of a cell are likely: all alike ('uniform'), or as all cells of the column say ('release')"
INSTANCES = "published cells as expected features ('leaves') or as values drawn from them ('draws')"


class TrainingData(Protocol):
    """A node's training rows as features, of which there may be several instances used in turn."""

    @property
    def n_instances(self) -> int:
        """How many instances of the features there are."""

    @property
    def target(self) -> TargetArray:
        """The target of every row; see :func:`fedanon.models.target.target`."""

    def instance(self, round_number: int) -> int:
        """Which instance a round uses, 0..n_instances-1; the features of an instance never change."""

    def features(self, round_number: int) -> FeatureArray:
        """The features of all rows in a round."""


@dataclass
class LocalState:
    """What a node keeps between the rounds of a run, so that a round costs only what is new; it never leaves the node.

    An empty state is always valid: a model computes again what it does not find.
    """

    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """What one round of local training yields."""

    parameters: Parameters
    n_examples: int


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """A model trained in rounds: a binary classifier, and what else its ``outcomes`` say."""

    name: ClassVar[str]
    #: the kinds of targets it can predict
    outcomes: ClassVar[frozenset[OutcomeKind]] = frozenset({"binary"})
    #: what it predicts; :meth:`predicting` gives the same model for another target
    outcome: ClassVar[Outcome] = BINARY
    #: how the server combines updates, by name: a mean of arrays ("mean"), or the union of trees ("trees")
    aggregation: ClassVar[str]
    #: whether :meth:`train_on_noisy_gradients` can train it
    clips_gradients: ClassVar[bool] = False

    instances: Literal["leaves", "draws"] = parameter("leaves", help=INSTANCES)
    n_draws: int = parameter(10, help="how many times records are drawn; the rounds use the draws in turn", at_least=1)
    cell_values: Literal["uniform", "release"] = parameter("uniform", help=CELL_VALUES, optional=True)

    def __post_init__(self) -> None:
        check_fields(self)

    def predicting(self, outcome: Outcome) -> Self:
        """The same model for a target of another kind; ConfigError where it cannot predict such."""
        if outcome.kind not in self.outcomes:
            raise ConfigError(
                f"The model {self.name!r} cannot predict {outcome}; it can predict: {', '.join(sorted(self.outcomes))}."
            )
        model = copy(self)
        object.__setattr__(model, "outcome", outcome)
        return model

    def training_data(self, release: Release, encoding: Encoding, seed: int) -> TrainingData:
        """The published rows in the form this model learns best from."""
        likely = self.cell_values == "release" and not all_exact(release)
        if self.instances == "leaves" or all_exact(release):
            return LeafWeights(release, encoding, likely)
        return Draws(release, encoding, seed, self.n_draws, likely)

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
        self, parameters: Parameters, features: FeatureArray, *, state: LocalState | None = None
    ) -> FloatArray:
        """The probability of the positive class for every row; a ``state`` kept for the same rows saves work later.

        Of several classes, a column with the probability of each; of a number, the predicted place in its range.
        """

    # ---- what only some models can do -----------------------------------------------------------

    @property
    def gradient_steps(self) -> int:
        """How often a round of :meth:`train_on_noisy_gradients` asks every row."""
        return 1

    def train_on_noisy_gradients(
        self,
        parameters: Parameters,
        data: TrainingData,
        *,
        round_number: int,
        clip: float,
        noise_multiplier: float,
        learning_rate: float,
        noise: Noise,
    ) -> Update:
        """One round in which the gradient of every record is clipped and their sum gets noise."""
        raise ConfigError(f"The model {self.name!r} cannot clip the gradient of every record.")

    def change_step(
        self,
        trained: Parameters,
        received: Parameters,
        change: Callable[[AnyArray], AnyArray],
        state: LocalState,
    ) -> Parameters:
        """An update whose step away from the received parameters is another; what malicious nodes send.

        ``change`` maps the numbers of a step to those of the other one; ``state`` is the one it was trained with.
        """
        return [before + change(after - before) for after, before in zip(trained, received, strict=True)]


# ---- Training data: the rows of a release as features --------------------------------------------


def all_exact(release: Release) -> bool:
    """Whether every published cell is one value, so that drawing from it changes nothing."""
    return all(_exact(cells) for cells in release.cells.values())


def _exact(cells: Cells) -> bool:
    if isinstance(cells, Intervals):
        return bool((cells.low == cells.high).all())
    if isinstance(cells, Numbers):
        return bool(np.isfinite(cells.values).all())
    # the leaf that means missing is no value
    missing = cells.hierarchy.codes.get(MISSING, -1)
    return bool(((cells.nodes < cells.hierarchy.n_leaves) & (cells.nodes != missing)).all())


@dataclass(frozen=True, eq=False)
class LeafWeights:
    """The same features in every round: middles of intervals, nodes spread over their leaves; or ``likely`` values."""

    release: Release
    encoding: Encoding
    likely: bool = False
    n_instances: int = field(default=1, init=False)

    @cached_property
    def target(self) -> TargetArray:
        """The target of every published row."""
        return target(self.release, self.release.schema)

    def instance(self, round_number: int) -> int:
        """Always 0: there is one set of features."""
        return 0

    def features(self, round_number: int) -> FeatureArray:
        """The features, whatever the round."""
        return self._features

    @cached_property
    def _features(self) -> FeatureArray:
        if self.likely:
            return LikelyValues(self.release, self.encoding).expected()
        return self.encoding.encode_release(self.release)


@dataclass(frozen=True, eq=False)
class Draws:
    """Every record drawn several times: a value inside each interval, a leaf below each node.

    The rounds use these instances in turn, so that a model can keep what it has computed for each of them.

    Parameters
    ----------
    release : the published rows.
    encoding : how they become features.
    seed : seed of the draws; instance i depends only on (seed, i).
    n_instances : how many times the records are drawn.
    likely : whether values are drawn as the release makes them likely, not all alike.
    """

    release: Release
    encoding: Encoding
    seed: int
    n_instances: int = 10
    likely: bool = False

    @cached_property
    def target(self) -> TargetArray:
        """The target of every published row."""
        return target(self.release, self.release.schema)

    def instance(self, round_number: int) -> int:
        """Which instance a round uses."""
        return round_number % self.n_instances

    def features(self, round_number: int) -> FeatureArray:
        """The features of the round's instance."""
        rng = np.random.default_rng((self.seed, self.instance(round_number)))
        return self.encoding.draw_release(self.release, rng) if not self.likely else self._values.draw(rng)

    @cached_property
    def _values(self) -> LikelyValues:
        return LikelyValues(self.release, self.encoding)


def promises_something(data: object) -> bool:
    """Whether the rows come from a release that claims a privacy model."""
    return isinstance(data, LeafWeights | Draws) and data.release.claim is not None
