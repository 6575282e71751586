"""A small federation of the scene's table, some of whose clients are hostile: where attacks from inside are played."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedanon.attacks.base import Attack, NotApplicableError
from fedanon.attacks.learning import hurried, labels_of
from fedanon.attacks.scene import Scene
from fedanon.data import partition
from fedanon.parameters import parameter

if TYPE_CHECKING:
    from fedanon.federated.node import Node
    from fedanon.federated.settings import RunSettings

ROUNDS = {"lr": 5, "xgb": 10}
#: fewer people of a client teach a model nothing that could be spoilt
MIN_PEOPLE = 30


@dataclass(frozen=True, kw_only=True)
class FederationAttack(Attack):
    """Base of the attacks from inside a federation."""

    target = "federation"

    clients: int = parameter(10, help="clients among whom the people are dealt out", at_least=4)
    hostile: int = parameter(3, help="how many of them are hostile", at_least=1)
    model: Literal["lr", "xgb"] = parameter("lr", help="what they train")
    strategy: str = parameter("robust", help="how the server combines updates")

    def federation(self, scene: Scene, rng: np.random.Generator) -> Federation:
        """The clients, each with its part of the table; NotApplicableError where there can be none."""
        labels_of(scene.table)
        if scene.anonymizer is None:
            raise NotApplicableError("It needs the method, so that every client can release its own rows.")
        if scene.table.n_persons < MIN_PEOPLE * self.clients:
            raise NotApplicableError(f"It needs at least {MIN_PEOPLE} people for each of {self.clients} clients.")
        if find_spec("flwr") is None:
            raise NotApplicableError("It needs Flower: install fedanon[federated].")
        return Federation(self, scene, int(rng.integers(2**31)))


class Federation:
    """Clients that have prepared their releases, for several runs.

    Parameters
    ----------
    attack : says how many clients there are, and what they train.
    scene : whose table they share.
    seed : of the runs.
    """

    def __init__(self, attack: FederationAttack, scene: Scene, seed: int) -> None:
        self._attack = attack
        self._scene = scene
        self._seed = seed

    @property
    def labels(self) -> Any:
        """Of all test rows."""
        return np.concatenate([node.test[1] for node in self._nodes])

    def play(self, tampering: str, hostile: int) -> dict[str, Any]:
        """The result of a run."""
        from fedanon.federated.simulation import simulate_nodes

        settings = replace(self._settings, tampering=tampering, hostile=hostile)
        with _quiet():
            # a copy has what its node prepared, and has learned nothing yet
            return simulate_nodes([copy(node) for node in self._nodes], settings).to_dict()

    @cached_property
    def _settings(self) -> RunSettings:
        from fedanon.federated.settings import RunSettings

        attack, anonymizer = self._attack, hurried(self._scene.anonymizer, 1 / self._attack.clients)
        return RunSettings(
            method=anonymizer.name,
            method_settings=json.dumps(asdict(anonymizer)),
            model=attack.model,
            strategy=attack.strategy,
            clients=attack.clients,
            rounds=ROUNDS[attack.model],
            evaluate_every=ROUNDS[attack.model],
            seed=self._seed,
        )

    @cached_property
    def _nodes(self) -> list[Node]:
        from fedanon.federated.node import make_node

        parts = partition.iid(self._scene.table, self._attack.clients, np.random.default_rng(self._seed))
        return [make_node(self._scene.table.take(rows), self._settings, i) for i, rows in enumerate(parts)]


@contextmanager
def _quiet() -> Iterator[None]:
    """What the server logs of hostile clients is here what was asked for."""
    log = logging.getLogger("fedanon")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
