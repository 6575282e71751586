"""A federation of gateways on this machine: their windows come as time passes, and the rounds go on.

Every node sees at a round the windows that had been published by then, trains on the last ones before the newest, and
scores the model on the newest. What leaves the nodes is what would leave deployed ones.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.data.schema import Schema
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.federated.simulation import OnRound
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters
from fedanon.models.scores import auc
from fedanon.models.target import outcome_of
from fedanon.release.release import Release
from fedanon.streams.drift import drift_by_column
from fedanon.streams.learning_node import StreamNode
from fedanon.streams.windowed import STREAM, WindowedStream
from fedanon.streams.windows import Window, read_windows


@dataclass(frozen=True)
class Calendar:
    """When the windows of every gateway were published, and at which moments rounds are held."""

    published: tuple[tuple[float, ...], ...]
    rounds: tuple[float, ...]

    def visible(self, node: int, round_number: int) -> int:
        """Number of windows a node has in a round."""
        return bisect_right(self.published[node], self.rounds[round_number - 1])


@dataclass(frozen=True)
class StreamSimulation:
    """Settings, outcome, when the rounds were held, and how far every node's windows had drifted."""

    settings: RunSettings
    names: tuple[str, ...]
    outcome: RunResult
    moments: tuple[float, ...]
    drift: list[list[dict[str, float]]]
    claims: list[dict[str, Any]]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """One JSON object."""
        rounds = [
            {
                **scores,
                "moment": self.moments[scores["round"] - 1],
                "drift": dict(zip(self.names, drift, strict=True)),
                "psi": _means(drift),
            }
            for scores, drift in zip(self.outcome.rounds, self.drift, strict=True)
        ]
        return {
            "nodes": [{"name": name, **claim} for name, claim in zip(self.names, self.claims, strict=True)],
            "method_settings": dict(self.settings.method_settings),
            "model": self.settings.model,
            "rejected": self.outcome.rejected,
            "seconds": round(self.seconds, 3),
            "rounds": rounds,
        }


def _means(drift: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean PSI over the nodes, by column."""
    return {name: float(np.mean([one[name] for one in drift])) for name in drift[0]}


def simulate_streams(
    folders: Sequence[Path],
    schema: Schema,
    settings: RunSettings,
    *,
    every: float = 0.0,
    on_round: OnRound | None = None,
) -> StreamSimulation:
    """Learn from the windows of several gateways as they come.

    Parameters
    ----------
    folders : of the windows, one per node.
    schema : of the readings.
    settings : of the run; its method is `stream`.
    every : time between two rounds, in units of the published times; 0 spreads the rounds of the settings evenly.
    on_round : called with the scores of every round.
    """
    begun = time.perf_counter()
    if settings.method != STREAM:
        raise ConfigError("A simulation of streams takes no method: the gateways have anonymized the readings.")
    outcome_of(schema)  # a schema without a target would make every node fail, and none would say why
    streams = [WindowedStream(folder, schema) for folder in folders]
    calendar = make_calendar(folders, settings, every)
    settings = replace(settings, rounds=len(calendar.rounds), nodes=len(folders), evaluate_every=1)
    nodes = [StreamNode(stream, settings, i, visible=partial(calendar.visible, i)) for i, stream in enumerate(streams)]
    watch = _Watch(nodes, [_time_column(folder) for folder in folders])
    grid = LocalGrid(client_app(prepared=nodes), settings, len(nodes))
    # what a node scores on changes, so it keeps nothing between rounds
    run = FederatedRun(grid, settings, score=watch.scores, on_round=on_round, forgetful=True)
    outcome = run.run()
    claims = [{**node.stream.claim.to_dict(), "windows": node.n_windows, "counted": node.unit} for node in nodes]
    names = _names(folders)
    elapsed = time.perf_counter() - begun
    return StreamSimulation(settings, names, outcome, calendar.rounds, watch.drift, claims, elapsed)


class _Watch:
    """Looks on: all newest windows together, and how far they are from the first ones."""

    def __init__(self, nodes: Sequence[StreamNode], times: Sequence[str]) -> None:
        self._nodes, self._times = nodes, times
        self._first: dict[tuple[int, int], Release] = {}
        self.drift: list[list[dict[str, float]]] = []

    def scores(self, _: Parameters) -> dict[str, float]:
        """The AUC of all newest windows together, as the nodes have predicted; of other targets nothing."""
        self.drift.append(
            [
                drift_by_column(self._reference(node), node.test_release, skip=skip)
                for node, skip in zip(self._nodes, self._times, strict=True)
            ]
        )
        if self._nodes[0].outcome.kind != "binary":
            return {}
        scored = [node.last_scored for node in self._nodes if node.last_scored is not None]
        truth, predicted = (np.concatenate(parts) for parts in zip(*scored, strict=True))
        return {"auc_pooled_released": auc(truth, predicted)} if len(np.unique(truth)) == 2 else {}

    def _reference(self, node: StreamNode) -> Release:
        """The first windows, as many as a round trains on once they are there."""
        count = min(node.asked.windows, node.n_windows - node.asked.tested)
        if (node.number, count) not in self._first:
            self._first[node.number, count] = node.stream.release(0, count)
        return self._first[node.number, count]


# ---- time ----------------------------------------------------------------------------------------


def make_calendar(folders: Sequence[Path], settings: RunSettings, every: float) -> Calendar:
    """Rounds from the moment at which every gateway has windows to train on and to test, to the last window."""
    published = tuple(tuple(_moments(folder)) for folder in folders)
    needed = 1 + int(settings.method_settings.get("tested", 1))
    short = [str(folder) for folder, moments in zip(folders, published, strict=True) if len(moments) < needed]
    if short:
        raise InfeasibleError(f"At least {needed} windows are needed; too few are in: {', '.join(short)}.")
    first, last = max(moments[needed - 1] for moments in published), max(moments[-1] for moments in published)
    if every > 0:
        rounds = np.arange(first, last + every, every)
    else:
        rounds = np.linspace(first, last, settings.rounds) if last > first else np.array([first])
    return Calendar(published, tuple(rounds.tolist()))


def _moments(folder: Path) -> list[float]:
    """When each window was published, by the times in it; their numbers where no column holds one."""
    of: Callable[[Window], float] = _last_time if _time_column(folder) else _number
    return list(accumulate(map(of, read_windows(folder)), max))


def _time_column(folder: Path) -> str:
    first = next(read_windows(folder))
    return str(first.manifest["provenance"].get("time", ""))


def _last_time(window: Window) -> float:
    column = str(window.manifest["provenance"]["time"])
    return max(float(row[column]) for row in window.rows)


def _number(window: Window) -> float:
    return float(window.number)


def _names(folders: Sequence[Path]) -> tuple[str, ...]:
    """Names people know: of the folders or, where these are all called alike, of the folders they lie in."""
    plain = tuple(folder.resolve().name for folder in folders)
    return plain if len(set(plain)) == len(plain) else tuple(folder.resolve().parent.name for folder in folders)
