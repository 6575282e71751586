"""A simulated federation: many clients on one machine, with what only a simulation can know (pooled scores)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedanon._version import __version__
from fedanon.federated.checkpoints import Checkpoints
from fedanon.federated.node import Node, make_node
from fedanon.federated.server import Federation, Outcome
from fedanon.federated.settings import RunSettings
from fedanon.federated.sources import n_parts, node_table
from fedanon.models.base import LocalState, Model, Parameters
from fedanon.models.scores import auc

Engine = Literal["local", "ray"]
OnRound = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Simulation:
    """Result of a simulated run: settings, curves, final scores and the nodes' measures."""

    settings: RunSettings
    outcome: Outcome
    engine: Engine
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """One JSON object with everything a paper needs."""
        last = self.outcome.rounds[-1]
        facts = self.outcome.facts
        sizes = [f.n_train for f in facts.values()]
        measures = {
            name: float(np.average([f.measures[name] for f in facts.values()], weights=sizes))
            for name in sorted(set.intersection(*(set(f.measures) for f in facts.values())))
        }
        return {
            "engine": self.engine,
            "version": __version__,
            "settings": self.settings.to_config(),
            **{name: value for name, value in last.items() if name != "round"},
            **measures,
            "linkage": measures.get("linkage_expected_share"),
            "n_train": sum(sizes),
            "n_test": sum(f.n_test for f in facts.values()),
            "rejected": self.outcome.rejected,
            "silent": self.outcome.silent,
            **({"together": self.outcome.together} if self.outcome.together else {}),
            "seconds": round(self.seconds, 3),
            "rounds": self.outcome.rounds,
        }


def simulate(
    settings: RunSettings, *, engine: Engine = "local", checkpoints: Path | None = None, on_round: OnRound | None = None
) -> Simulation:
    """Run a federation on this machine.

    Parameters
    ----------
    settings : of the run.
    engine : 'local' (in-process, reproducible) or 'ray' (Flower's simulation engine).
    checkpoints : folder in which every round is kept; a killed run goes on from there.
    on_round : called with the scores of every evaluated round.
    """
    start = time.perf_counter()
    nodes = [make_node(node_table(settings, i), settings, i) for i in range(n_parts(settings))]
    pooled = PooledTest(nodes)

    def after(scores: dict[str, Any], parameters: Parameters) -> None:
        scores |= pooled.scores(parameters)
        if on_round is not None:
            on_round(scores)

    store = Checkpoints(checkpoints) if checkpoints else None
    if engine == "local":
        from fedanon.federated.client import client_app
        from fedanon.federated.engine_local import LocalGrid

        grid = LocalGrid(client_app(prepared=nodes), settings)
        outcome = Federation(grid, settings, checkpoints=store, on_round=after).run()
    else:
        from fedanon.federated.engine_ray import run_with_ray

        # a node's messages may reach different processes of Ray's, which share no state
        outcome = run_with_ray(
            settings, lambda grid: Federation(grid, settings, checkpoints=store, on_round=after, forgetful=True)
        )
    return Simulation(settings, outcome, engine, time.perf_counter() - start)


class PooledTest:
    """The raw test rows of all clients together. A real federation cannot pool them; a simulation can."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        tests = [node.test for node in nodes]
        self._features = np.concatenate([features for features, _ in tests])
        self._truth = np.concatenate([truth for _, truth in tests])
        self._model: Model = nodes[0].model
        self._state = LocalState()

    def scores(self, parameters: Parameters) -> dict[str, float]:
        """The AUC over all test rows; ``parameters`` are what a node is sent in every evaluated round."""
        return {
            "auc_pooled": auc(self._truth, self._model.predict_proba(parameters, self._features, state=self._state))
        }
