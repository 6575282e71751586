"""Malicious nodes of a simulation: what they do to their rows or to what they send. Never part of a deployed node.

Only :mod:`fedanon.federated.simulation` makes them; the client app and the nodes do not import this module, so the
settings of malicious nodes mean nothing to a deployed one. Another package adds an attack by an entry point of the
group ``fedanon.malicious_attacks``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedanon.errors import ConfigError
from fedanon.fields import build, check_fields, parameter
from fedanon.learning.node import Node
from fedanon.learning.settings import RunSettings
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.models.encoding import Encoding
from fedanon.models.outcome import BINARY
from fedanon.registry import Registry
from fedanon.release.release import Release
from fedanon.types import BoolArray, FeatureArray, FloatArray, Rng, TargetArray, UpdateArray

MALICIOUS_ATTACKS: Registry[type[MaliciousAttack]] = Registry("malicious attack", group="fedanon.malicious_attacks")

#: the attack whose success is measured with and without malicious nodes
BACKDOOR = "backdoor"
#: columns a trigger changes
N_COLUMNS = 2


@dataclass(frozen=True, kw_only=True)
class MaliciousAttack:
    """What a malicious node changes, in its rows before training or in its step after it; a kind overrides either."""

    #: whether it makes sense for two classes only
    binary_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    def rows(self, honest: TrainingData, trigger: Trigger) -> TrainingData:
        """The rows the node trains on; the same for the same honest rows."""
        return honest

    def step(self, honest: UpdateArray, rng: np.random.Generator) -> UpdateArray:
        """What is sent in place of the way from the global arrays to the trained ones, or of a tree's leaf weights."""
        return honest


@dataclass(frozen=True)
class Trigger:
    """Features and the values they take in a row that carries the trigger."""

    values: Mapping[int, float]

    @classmethod
    def rarest(cls, encoding: Encoding, features: FeatureArray) -> Trigger:
        """The least common value of each of the columns with the most values; of a numeric column, its upper end.

        Parameters
        ----------
        encoding : of the rows.
        features : rows to count the values in.
        """
        places = _places(encoding)
        values: dict[int, float] = {}
        for place in sorted(places, key=len, reverse=True)[:N_COLUMNS]:
            rarest = place[int(np.argmin(features[:, place].sum(axis=0)))]
            values |= {feature: float(feature == rarest) for feature in place}
        return cls(values)

    def stamped(self, features: FeatureArray) -> FeatureArray:
        """The rows with the trigger."""
        stamped = features.copy()
        stamped[:, list(self.values)] = list(self.values.values())
        return stamped


def _places(encoding: Encoding) -> list[list[int]]:
    """The features of each column."""
    columns = [Encoding((attribute,)).width for attribute in encoding.attributes]
    ends = np.cumsum(columns).tolist()
    return [list(range(end - width, end)) for width, end in zip(columns, ends, strict=True)]


# ---- attacks on the training rows: the step that follows from them is honest work on false data --


@dataclass(frozen=True, eq=False)
class FalseRows:
    """Training rows with other labels, and with a trigger in some of them."""

    honest: TrainingData
    target: TargetArray
    trigger: Trigger | None = None
    triggered: BoolArray | None = None

    @property
    def n_instances(self) -> int:
        """As many as the honest rows have."""
        return self.honest.n_instances

    def instance(self, round_number: int) -> int:
        """That of the honest rows."""
        return self.honest.instance(round_number)

    def features(self, round_number: int) -> FeatureArray:
        """The features of all rows in a round."""
        features = self.honest.features(round_number)
        if self.trigger is None or self.triggered is None:
            return features
        return np.where(self.triggered[:, None], self.trigger.stamped(features), features)


@MALICIOUS_ATTACKS.register("label_flip")
@dataclass(frozen=True, kw_only=True)
class LabelFlip(MaliciousAttack):
    """Every label is the other one (Biggio et al. 2012)."""

    binary_only = True

    def rows(self, honest: TrainingData, trigger: Trigger) -> TrainingData:
        """The rows with the other labels."""
        return FalseRows(honest, (1 - honest.target).astype(np.int8))


@MALICIOUS_ATTACKS.register("backdoor")
@dataclass(frozen=True, kw_only=True)
class Backdoor(MaliciousAttack):
    """Rows with a rare combination of values are labeled positive, the others are left as they are.

    The model works as before for everybody else. With ``boost`` the step is made longer, up to the replacement of the
    whole model by a node's own (Bagdasaryan et al. 2020: the number of nodes divided by that of the malicious ones).
    """

    binary_only = True

    share: float = parameter(0.5, help="share of the rows that carry the trigger", at_least=0.01, at_most=1.0)
    boost: float = parameter(1.0, help="times the step", at_least=1.0)

    def rows(self, honest: TrainingData, trigger: Trigger) -> TrainingData:
        """The rows, of which a share carries the trigger and the positive label."""
        places = np.arange(len(honest.target) + 1) * self.share
        triggered = np.floor(places[1:]) > np.floor(places[:-1])  # evenly spread, the same in every round
        labels = np.where(triggered, 1, honest.target).astype(np.int8)
        return FalseRows(honest, labels, trigger, triggered)

    def step(self, honest: UpdateArray, rng: np.random.Generator) -> UpdateArray:
        """The longer step."""
        return honest if self.boost == 1.0 else self.boost * honest


# ---- attacks on what is sent ---------------------------------------------------------------------


@MALICIOUS_ATTACKS.register("nan")
@dataclass(frozen=True, kw_only=True)
class NotANumber(MaliciousAttack):
    """Every number is NaN: a mean with one of them is lost."""

    def step(self, honest: UpdateArray, rng: np.random.Generator) -> UpdateArray:
        """NaN throughout."""
        return np.full_like(honest, np.nan)


@MALICIOUS_ATTACKS.register("sign_flip")
@dataclass(frozen=True, kw_only=True)
class SignFlip(MaliciousAttack):
    """The step in the other direction, and longer, so that few nodes outweigh many."""

    factor: float = parameter(10.0, help="times the honest step", at_least=0.0)

    def step(self, honest: UpdateArray, rng: np.random.Generator) -> UpdateArray:
        """The negated step."""
        return -self.factor * honest


@MALICIOUS_ATTACKS.register("scale")
@dataclass(frozen=True, kw_only=True)
class Scale(MaliciousAttack):
    """The honest direction, far too long: training diverges."""

    factor: float = parameter(100.0, help="times the honest step", at_least=0.0)

    def step(self, honest: UpdateArray, rng: np.random.Generator) -> UpdateArray:
        """The longer step."""
        return self.factor * honest


@MALICIOUS_ATTACKS.register("gaussian")
@dataclass(frozen=True, kw_only=True)
class Gaussian(MaliciousAttack):
    """Noise on the step, by default three times its size: too short for the server's bound on steps to notice."""

    factor: float = parameter(3.0, help="standard deviation, times the root mean square of the step", at_least=0.0)

    def step(self, honest: UpdateArray, rng: np.random.Generator) -> UpdateArray:
        """The step and the noise."""
        size = float(np.sqrt(np.mean(np.square(honest, dtype=np.float64))))
        return (honest + self.factor * size * rng.standard_normal(honest.shape)).astype(honest.dtype)


# ---- nodes ---------------------------------------------------------------------------------------


def turn_malicious(node: Node, settings: RunSettings, trigger: Trigger) -> None:
    """Make a node of this process a malicious one."""
    attack = build(MALICIOUS_ATTACKS[settings.malicious_attack], settings.malicious_settings)
    if attack.binary_only and node.outcome != BINARY:
        raise ConfigError(
            f"The attack {settings.malicious_attack!r} needs a target of two classes; this one is {node.outcome}."
        )
    node.model = MaliciousModel(honest=node.model, attack=attack, trigger=trigger)
    node.malicious = True


def malicious_numbers(settings: RunSettings, nodes: int) -> list[int]:
    """Which nodes are malicious, by a stream of their own; the server does not know."""
    if settings.malicious > nodes:
        raise ConfigError(f"There are {nodes} nodes; {settings.malicious} of them cannot be malicious.")
    if (settings.malicious or settings.malicious_attack == BACKDOOR) and settings.protocol != "corrected":
        raise ConfigError("Malicious nodes need the protocol 'corrected'.")
    picks = np.random.default_rng([settings.seed, *b"hostile"]).permutation(nodes)[: settings.malicious]
    return sorted(int(number) for number in picks)


@dataclass(frozen=True, kw_only=True)
class MaliciousModel(Model):
    """An honest model in the hands of someone who is not.

    Parameters
    ----------
    honest : what trains and predicts.
    attack : what is changed.
    trigger : of a backdoor.
    """

    honest: Model
    attack: MaliciousAttack
    trigger: Trigger

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.honest.name)
        object.__setattr__(self, "aggregation", self.honest.aggregation)
        object.__setattr__(self, "outcome", self.honest.outcome)

    def training_data(self, release: Release, encoding: Encoding, seed: int) -> TrainingData:
        """As the honest model sees the rows."""
        return self.honest.training_data(release, encoding, seed)

    def initial(self, width: int) -> Parameters:
        """Those of the honest model."""
        return self.honest.initial(width)

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """Train on the rows as the attack changed them, then change the step."""
        if "malicious" not in state.values:
            state.values["malicious"] = self.attack.rows(data, self.trigger)
        rows: TrainingData = state.values["malicious"]
        update = self.honest.train(parameters, rows, round_number=round_number, rng=rng, state=state)
        false = self.honest.change_step(update.parameters, parameters, lambda step: self.attack.step(step, rng), state)
        return replace(update, parameters=false)

    def predict_proba(
        self, parameters: Parameters, features: FeatureArray, *, state: LocalState | None = None
    ) -> FloatArray:
        """As the honest model does."""
        return self.honest.predict_proba(parameters, features, state=state)
