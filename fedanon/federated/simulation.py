"""A simulated federation: many nodes on one machine, with what only a simulation can know (pooled scores)."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon._version import __version__
from fedanon.data.schema import Unit
from fedanon.errors import ConfigError
from fedanon.federated import wire
from fedanon.federated.server import FederatedRun
from fedanon.federated.sources import data_of, n_parts, node_table, provenance
from fedanon.joint.node import make_node
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.malicious import BACKDOOR, Trigger, malicious_numbers, turn_malicious
from fedanon.learning.model_card import make_card
from fedanon.learning.node import Node
from fedanon.learning.rounds import RunResult
from fedanon.learning.saved_model import write_model
from fedanon.learning.settings import RunSettings
from fedanon.models.assessment import calibration, group_labels
from fedanon.models.assessment import subgroups as score_subgroups
from fedanon.models.base import LocalState, Model, Parameters
from fedanon.models.outcome_scores import all_scores
from fedanon.models.scores import auc
from fedanon.models.target import class_values
from fedanon.types import FloatArray

#: of several classes, what is scored over the test rows of all nodes together
POOLED = ("auc", "auc_weighted", "f1_macro")
Engine = Literal["local", "ray"]
OnRound = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Simulation:
    """Result of a simulated run: settings, curves, final scores, the nodes' metrics, who was malicious, whether people
    or records were counted, and how the final model does in detail."""

    settings: RunSettings
    outcome: RunResult
    engine: Engine
    seconds: float
    malicious: list[int] = field(default_factory=list)
    unit: Unit = "records"
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome_kind(self) -> str:
        """The kind of target: binary, multiclass or regression."""
        return str(self.details["outcome"]["kind"])

    @property
    def data(self) -> dict[str, Any]:
        """Names and hashes of an own table; empty for a data set by name."""
        data = data_of(self.settings)
        return {} if isinstance(data, str) else dict(provenance(data))

    def write_model(self, folder: Path) -> Path:
        """Write the model, its card and its schema into a new folder."""
        card = make_card(self.settings.published(), self.outcome, security="simulated")
        return write_model(folder, card, self.outcome.parameters, node_table(self.settings, 0).schema)

    def to_dict(self) -> dict[str, Any]:
        """One JSON object with everything a paper needs."""
        last = self.outcome.rounds[-1]
        facts = self.outcome.facts
        sizes = [f.n_train for f in facts.values()]
        metrics = {
            name: float(np.average([f.measures[name] for f in facts.values()], weights=sizes))
            for name in sorted(set.intersection(*(set(f.measures) for f in facts.values())))
        }
        return {
            "engine": self.engine,
            "version": __version__,
            "settings": wire.encode_settings(self.settings.published()),
            **({"data": self.data} if self.data else {}),
            **{name: value for name, value in last.items() if name != "round"},
            **metrics,
            "linkage": metrics.get("linkage_expected_share"),
            "counted": self.unit,
            **self.details,
            "n_train": sum(sizes),
            "n_test": sum(f.n_test for f in facts.values()),
            "facts": {str(number): facts[number].to_dict() for number in sorted(facts)},
            "rejected": self.outcome.rejected,
            "unresponsive": self.outcome.unresponsive,
            "suspects": self.outcome.suspects,
            **({"malicious": self.malicious} if self.malicious else {}),
            **({"dp": self.outcome.dp} if self.outcome.dp else {}),
            **({"joint": self.outcome.joint} if self.outcome.joint else {}),
            "seconds": round(self.seconds, 3),
            "rounds": self.outcome.rounds,
        }


def simulate(
    settings: RunSettings,
    *,
    engine: Engine = "local",
    checkpoints: Path | None = None,
    on_round: OnRound | None = None,
    subgroups: Sequence[str] = (),
) -> Simulation:
    """Run a federation on this machine.

    Parameters
    ----------
    settings : of the run.
    engine : 'local' (in-process, reproducible) or 'ray' (Flower's simulation engine).
    checkpoints : folder in which every round is kept; a killed run goes on from there.
    on_round : called with the scores of every evaluated round.
    subgroups : categorical columns; the final model is also scored for each of their values.
    """
    if settings.malicious and engine != "local":
        raise ConfigError("Malicious nodes are simulated by the engine 'local' only.")
    start = time.perf_counter()
    # a partition by a column has as many nodes as the column has values, whatever was asked for
    settings = replace(_pinned(settings), nodes=n_parts(settings))
    nodes = [make_node(node_table(settings, i), settings, i) for i in range(settings.nodes)]
    for column in subgroups:
        group_labels(nodes[0].test_table, column)  # one that does not fit is reported before anything is run
    if engine == "local":
        return simulate_nodes(
            nodes, settings, checkpoints=checkpoints, on_round=on_round, start=start, subgroups=subgroups
        )
    from fedanon.federated.engines import run_with_ray

    store, test = _store(checkpoints), PooledTest(nodes)
    # a node's messages may reach different processes of Ray's, which share no state
    outcome = run_with_ray(
        settings,
        lambda grid: FederatedRun(
            grid, settings, checkpoints=store, score=test.scores, on_round=on_round, forgetful=True
        ),
    )
    details = test.details(outcome.parameters, subgroups)
    return Simulation(settings, outcome, engine, time.perf_counter() - start, unit=nodes[0].unit, details=details)


def simulate_nodes(
    nodes: Sequence[Node],
    settings: RunSettings,
    *,
    checkpoints: Path | None = None,
    on_round: OnRound | None = None,
    start: float | None = None,
    subgroups: Sequence[str] = (),
) -> Simulation:
    """Run a federation of nodes of this process, numbered as they stand; some turn malicious if the run has such.

    What nodes have prepared is kept, so a run over the same nodes with other settings of the rounds costs little; each
    must have the run's settings of data, method and model.
    """
    from fedanon.federated.client import client_app
    from fedanon.federated.engines import LocalGrid

    begun = time.perf_counter() if start is None else start
    test, numbers = PooledTest(nodes), malicious_numbers(settings, len(nodes))
    if numbers or settings.malicious_attack == BACKDOOR:
        trigger = Trigger.rarest(nodes[0].encoding, test.features)
        for number in numbers:
            turn_malicious(nodes[number], settings, trigger)
        if settings.malicious_attack == BACKDOOR:
            test.watch(trigger)
    grid = LocalGrid(client_app(prepared=nodes), settings, len(nodes))
    run = FederatedRun(grid, settings, checkpoints=_store(checkpoints), score=test.scores, on_round=on_round)
    outcome = run.run()
    details = test.details(outcome.parameters, subgroups)
    return Simulation(settings, outcome, "local", time.perf_counter() - begun, numbers, nodes[0].unit, details)


def _pinned(settings: RunSettings) -> RunSettings:
    """The settings with the hash of an own table, so that a changed one does not go on from an old checkpoint."""
    data = data_of(settings)
    if isinstance(data, str):
        return settings
    text = json.dumps(dict(provenance(data)), sort_keys=True)
    return replace(settings, source={**settings.source, "sha256": hashlib.sha256(text.encode()).hexdigest()})


def _store(folder: Path | None) -> Checkpoints | None:
    return Checkpoints(folder) if folder else None


class PooledTest:
    """The raw test rows of all nodes together. A real federation cannot pool them; a simulation can."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        tests = [node.test for node in nodes]
        self.features = np.concatenate([features for features, _ in tests])
        self._truth = np.concatenate([truth for _, truth in tests])
        self._model: Model = nodes[0].model
        self._nodes = nodes
        self._state = LocalState()
        self._triggered: NDArray[np.float32] | None = None
        self._triggered_state = LocalState()

    def watch(self, trigger: Trigger) -> None:
        """Score a backdoor too: on the rows of the negative class, with its trigger."""
        self._triggered = trigger.stamped(self.features[self._truth == 0])

    def scores(self, parameters: Parameters) -> dict[str, float]:
        """What needs all test rows together, such as the AUC, and the share of triggered ones that are called positive.

        ``parameters`` are what a node is sent in every evaluated round.
        """
        scores = self._pooled(self._model.predict_proba(parameters, self.features, state=self._state))
        if self._triggered is not None:
            called = self._model.predict_proba(parameters, self._triggered, state=self._triggered_state)
            scores["backdoor_rate"] = float((called >= 0.5).mean())
        return scores

    def _pooled(self, predicted: FloatArray) -> dict[str, float]:
        """Of a number nothing: what nodes report pools exactly."""
        outcome = self._nodes[0].outcome
        if outcome.kind == "binary":
            return {"auc_pooled": auc(self._truth, predicted)}
        names = POOLED if outcome.kind == "multiclass" else ()
        found = all_scores(outcome, self._truth, predicted)
        return {f"{name}_pooled": found[name] for name in names}

    def details(self, parameters: Parameters, columns: Sequence[str]) -> dict[str, Any]:
        """What is predicted, whether the final model is right as often as it says, and its scores by subgroup."""
        node = self._nodes[0]
        schema, outcome = node.schema, node.outcome
        predicted = self._model.predict_proba(parameters, self.features)
        found: dict[str, Any] = {
            "outcome": {"column": schema.target, "kind": outcome.kind, "classes": list(class_values(schema))},
            "calibration": calibration(outcome, self._truth, predicted, schema),
        }
        if columns:
            tables = [node.test_table for node in self._nodes]
            found["subgroups"] = score_subgroups(
                outcome, self._truth, predicted, tables, columns, unit=node.unit_length
            )
        return found
