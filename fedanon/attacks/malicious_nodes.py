"""Malicious nodes: some nodes of a federation send updates that spoil its model, or plant a backdoor in it.

Knows: what a node knows, and its own rows. Does: sends manipulated updates in every round, of several kinds
(:class:`Byzantine`), or trains on rows that carry a trigger (:class:`PlantedBackdoor`). Judged by: the pooled AUC, or
the share of negative rows that the trigger turns positive, against the same federation without malicious nodes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, Z, wilson_interval
from fedanon.attacks.context import AttackContext, with_scaled_budget
from fedanon.attacks.learning import labels_of
from fedanon.data import partition
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter

if TYPE_CHECKING:
    from fedanon.learning.node import Node
    from fedanon.learning.settings import RunSettings

#: what Byzantine nodes send, each in a run of its own
BYZANTINE_ATTACKS = ("nan", "sign_flip", "scale", "label_flip", "gaussian")
#: rounds of training by the aggregation of the model: trees learn more slowly
ROUNDS = {"mean": 5, "trees": 10}
#: of models that are combined in a way of their own
MANY_ROUNDS = 10
#: fewer people per node teach a model nothing that could be spoiled
MIN_PEOPLE = 30


@dataclass(frozen=True, kw_only=True)
class FederationAttack(Attack):
    """Base class of the attacks from inside a federation."""

    target = "federation"

    nodes: int = parameter(10, help="nodes among which the people are dealt out", at_least=4, aliases=("clients",))
    malicious: int = parameter(3, help="how many of them are malicious", at_least=1, aliases=("hostile",))
    model: str = parameter("lr", help="model they train: {models}")
    strategy: str = parameter("robust", help="how the server combines updates: {strategies}")

    def make_federation(self, context: AttackContext, rng: np.random.Generator) -> TrialFederation:
        """Make the nodes, each with its part of the table; raise NotApplicableError where there can be none."""
        labels_of(context.table)
        if context.anonymizer is None:
            raise NotApplicableError("It needs the method, so that every node can release its own rows.")
        if context.table.n_units < MIN_PEOPLE * self.nodes:
            raise NotApplicableError(f"It needs at least {MIN_PEOPLE} people for each of {self.nodes} nodes.")
        if find_spec("flwr") is None:
            raise NotApplicableError("It needs Flower: install fedanon[federated].")
        return TrialFederation(self, context, int(rng.integers(2**31)))


class TrialFederation:
    """Nodes that have prepared their releases, for several runs.

    Parameters
    ----------
    attack : how many nodes there are, and what they train.
    context : whose table they share.
    seed : of the runs.
    """

    def __init__(self, attack: FederationAttack, context: AttackContext, seed: int) -> None:
        self._attack = attack
        self._context = context
        self._seed = seed

    @property
    def labels(self) -> Any:
        """The labels of all test rows."""
        return np.concatenate([node.test[1] for node in self._nodes])

    def run(self, attack: str, malicious: int) -> dict[str, Any]:
        """Run the federation and return its result."""
        from fedanon.federated.simulation import simulate_nodes

        settings = replace(self._settings, malicious_attack=attack, malicious=malicious)
        with _quiet():
            # a copy keeps what its node prepared, and has learned nothing yet
            return simulate_nodes([copy(node) for node in self._nodes], settings).to_dict()

    @cached_property
    def _settings(self) -> RunSettings:
        from fedanon.learning.settings import RunSettings
        from fedanon.models import MODELS

        rounds = ROUNDS.get(MODELS[self._attack.model].aggregation, MANY_ROUNDS)
        attack, anonymizer = self._attack, with_scaled_budget(self._context.anonymizer, 1 / self._attack.nodes)
        return RunSettings(
            method=anonymizer.name,
            method_settings=asdict(anonymizer),
            model=attack.model,
            strategy=attack.strategy,
            nodes=attack.nodes,
            rounds=rounds,
            evaluate_every=rounds,
            seed=self._seed,
        )

    @cached_property
    def _nodes(self) -> list[Node]:
        from fedanon.joint.node import make_node

        parts = partition.iid(self._context.table, self._attack.nodes, np.random.default_rng(self._seed))
        return [make_node(self._context.table.select_rows(rows), self._settings, i) for i, rows in enumerate(parts)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the server logs about malicious nodes: here it is expected."""
    log = logging.getLogger("fedanon")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@ATTACKS.register("byzantine")
@dataclass(frozen=True, kw_only=True)
class Byzantine(FederationAttack):
    """Share of the pairs of a positive and a negative test row that the model ranks wrongly: 1 - AUC.

    The worst of several attacks counts (Blanchard et al. 2017); the baseline is the same federation without
    malicious nodes.
    """

    title = "Byzantine nodes"
    meaning = "Malicious nodes make the model of all useless by the updates they send."

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Run once without malicious nodes, and once for each attack."""
        federation = self.make_federation(context, rng)
        clean = federation.run(BYZANTINE_ATTACKS[0], 0)
        played = {name: federation.run(name, self.malicious) for name in BYZANTINE_ATTACKS}
        areas = {name: result["auc_pooled"] for name, result in played.items()}
        worst, labels = min(areas.values()), federation.labels
        named = [[entry["node"] in result["malicious"] for entry in result["suspects"]] for result in played.values()]
        details = {
            "auc_clean": clean["auc_pooled"],
            **{f"auc_{name}": area for name, area in areas.items()},
            "malicious_named_share": sum(map(sum, named)) / (self.malicious * len(played)),
            "honest_named": float(sum(right.count(False) for right in named)),
        }
        interval = auc_interval(worst, int(labels.sum()), int((labels == 0).sum()))
        rate = 1 - worst
        return Finding(rate, 1 - clean["auc_pooled"], (1 - interval[1], 1 - interval[0]), len(labels), details)


def auc_interval(area: float, positives: int, negatives: int) -> tuple[float, float]:
    r"""Compute the 95 % interval of an AUC A by the variance of Hanley and McNeil (1982).

    .. math:: \frac{A(1-A) + (p-1)(Q_1 - A^2) + (n-1)(Q_2 - A^2)}{pn}, \quad
              Q_1 = \frac{A}{2-A}, \; Q_2 = \frac{2A^2}{1+A}
    """
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positives - 1) * (first - area**2) + (negatives - 1) * (second - area**2)
    reach = Z * math.sqrt(spread / (positives * negatives))
    return max(0.0, area - reach), min(1.0, area + reach)


@ATTACKS.register("backdoor")
@dataclass(frozen=True, kw_only=True)
class PlantedBackdoor(FederationAttack):
    """Share of the negative test rows that are called positive once they carry the trigger (Bagdasaryan et al. 2020).

    The baseline is the same share without malicious nodes.
    """

    title = "Backdoor"
    meaning = "Malicious nodes decide what the model says of a row that carries their mark."

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Run once without malicious nodes and once with them."""
        federation = self.make_federation(context, rng)
        clean, planted = (federation.run("backdoor", malicious) for malicious in (0, self.malicious))
        n, rate = int((federation.labels == 0).sum()), planted["backdoor_rate"]
        details = {name: result["auc_pooled"] for name, result in (("auc_clean", clean), ("auc_planted", planted))}
        return Finding(rate, clean["backdoor_rate"], wilson_interval(rate * n, n), n, details)
