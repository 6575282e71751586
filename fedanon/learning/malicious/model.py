"""A hostile client: a node like the others whose model trains on false rows or lies about its step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError
from fedanon.fields import build
from fedanon.learning.malicious import TAMPERINGS
from fedanon.learning.malicious.base import Tampering, Trigger
from fedanon.learning.node import Node
from fedanon.learning.settings import RunSettings
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.models.encoding import Encoding
from fedanon.release.release import Release
from fedanon.types import Rng

#: the tampering whose success is measured with and without hostile clients
BACKDOOR = "backdoor"


def turn_hostile(node: Node, settings: RunSettings, trigger: Trigger) -> None:
    """Make a node of this process a hostile one."""
    tampering = build(TAMPERINGS[settings.malicious_attack], settings.malicious_settings)
    node.model = HostileModel(honest=node.model, tampering=tampering, trigger=trigger)
    node.hostile = True


def hostile_numbers(settings: RunSettings, clients: int) -> list[int]:
    """Which clients are hostile, by a stream of their own; the server is not told."""
    if settings.malicious > clients:
        raise ConfigError(f"There are {clients} clients; {settings.malicious} of them cannot be hostile.")
    if (settings.malicious or settings.malicious_attack == BACKDOOR) and settings.protocol != "corrected":
        raise ConfigError("Hostile clients need the protocol 'corrected'.")
    picks = np.random.default_rng([settings.seed, *b"hostile"]).permutation(clients)[: settings.malicious]
    return sorted(int(number) for number in picks)


@dataclass(frozen=True, kw_only=True)
class HostileModel(Model):
    """An honest model in the hands of someone who is not.

    Parameters
    ----------
    honest : what trains and predicts.
    tampering : what is changed.
    trigger : of a backdoor.
    """

    honest: Model
    tampering: Tampering
    trigger: Trigger

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.honest.name)
        object.__setattr__(self, "aggregation", self.honest.aggregation)

    def training_data(self, release: Release, encoding: Encoding, seed: int) -> TrainingData:
        """As the honest model sees the rows."""
        return self.honest.training_data(release, encoding, seed)

    def initial(self, width: int) -> Parameters:
        """Those of the honest model."""
        return self.honest.initial(width)

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """Train on the rows as they were tampered with, then tamper with the step."""
        if "hostile" not in state.values:
            state.values["hostile"] = self.tampering.rows(data, self.trigger)
        rows: TrainingData = state.values["hostile"]
        update = self.honest.train(parameters, rows, round_number=round_number, rng=rng, state=state)
        false = self.honest.change_step(
            update.parameters, parameters, lambda step: self.tampering.step(step, rng), state
        )
        return replace(update, parameters=false)

    def predict_proba(
        self, parameters: Parameters, features: NDArray[np.float32], *, state: LocalState | None = None
    ) -> NDArray[np.float64]:
        """As the honest model does."""
        return self.honest.predict_proba(parameters, features, state=state)
