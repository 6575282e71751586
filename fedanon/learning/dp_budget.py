"""The privacy budget of a run on the server: what was spent, kept beside the checkpoints, and what is left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError, DataError
from fedanon.io.atomic import atomic_write
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.settings import COVERS, UNITS, DpSettings, RunSettings
from fedanon.privacy.accounting.accountant import GaussianRounds, epsilon_of, keeps, noise_multiplier_for

#: room for the rounding of a sum of rounds, and for nothing else
ROUNDING = 1e-9


class Budget:
    """What rounds have cost.

    A round is noted before anyone is asked: one that fails half-way, or is asked again after a restart, has cost its
    share. The note outlives checkpoints that are discarded: what was told stays told.

    Parameters
    ----------
    dp : the budget.
    settings : of the run.
    n_clients : clients that take part.
    path : of the note; None keeps none.
    """

    def __init__(self, dp: DpSettings, settings: RunSettings, n_clients: int, path: Path | None) -> None:
        self.dp = dp
        self.settings = settings
        self.n_clients = n_clients
        self._path = path
        self._spent = read_note(path) if path else []

    @classmethod
    def of(cls, settings: RunSettings, n_clients: int, checkpoints: Checkpoints | None) -> Budget | None:
        """The budget of a run that has one."""
        if settings.dp is None:
            return None
        path = checkpoints.folder / f"{checkpoints.name(settings)}.spent.json" if checkpoints else None
        return cls(settings.dp, settings, n_clients, path)

    @property
    def rate(self) -> float:
        """Chance of a client to be in a round's sample, where the sample is secret: from a server that is trusted."""
        wanted = self.settings.clients_per_round
        return min(wanted / self.n_clients, 1.0) if self.dp.mode == "central" and wanted else 1.0

    @property
    def epsilon(self) -> float:
        """Spent until now, at the run's delta."""
        return epsilon_of(grouped(self._spent), self.dp.delta)

    @property
    def noise_multiplier(self) -> float:
        """Of the last round."""
        return self._spent[-1].noise_multiplier

    def spend(self, number: int) -> bool:
        """Note one more round, if the budget has room for it."""
        if self._spent and self.epsilon >= self.dp.epsilon:
            return False
        more = self._next(self.settings.rounds - number + 1)
        if not self._keeps(more):
            return False
        self._spent.append(more)
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_note(self._path, self._spent)
        return True

    def _next(self, left: int) -> GaussianRounds:
        """The next round; the server divides what is left of its budget, nodes follow the plan of the whole run."""
        if self.dp.mode != "central":
            return node_round(self.settings)
        if self._spent and self._keeps(replace(self._spent[-1], rate=self.rate, count=left)):
            return replace(self._spent[-1], rate=self.rate)  # all goes as planned
        multiplier = noise_multiplier_for(
            self.dp.epsilon, self.dp.delta, count=left, rate=self.rate, spent=grouped(self._spent)
        )
        return GaussianRounds(noise_multiplier=multiplier, rate=self.rate)

    def _keeps(self, more: GaussianRounds) -> bool:
        """Whether the budget has room for more rounds."""
        return keeps([*grouped(self._spent), more], self.dp.epsilon * (1 + ROUNDING), self.dp.delta)

    def to_dict(self) -> dict[str, Any]:
        """For the result of the run."""
        dp = self.dp
        return {
            "mode": dp.mode,
            "epsilon": dp.epsilon,
            "delta": dp.delta,
            "epsilon_spent": self.epsilon,
            "rounds_spent": len(self._spent),
            "clip": dp.clip,
            "noise_multiplier": self.noise_multiplier if self._spent else None,
            "rate": self.rate,
            "unit": UNITS[dp.mode],
            "covers": COVERS,
            "randomness": dp.randomness,
            "promised": dp.randomness == "secure",
        }


def queries_a_round(settings: RunSettings) -> int:
    """How often a node's rows are asked in a round: once an update, or once a gradient step."""
    from fedanon.learning.node import make_model

    assert settings.dp is not None
    return int(getattr(make_model(settings), "steps", 1)) if settings.dp.mode == "record" else 1


@lru_cache(maxsize=256)
def node_multiplier(settings: RunSettings) -> float:
    """The noise multiplier of a node that is asked in every round: by whom it is asked how often is no secret."""
    assert settings.dp is not None
    count = settings.rounds * queries_a_round(settings)
    return noise_multiplier_for(settings.dp.epsilon, settings.dp.delta, count=count)


def node_round(settings: RunSettings) -> GaussianRounds:
    """What one round costs where nodes add the noise."""
    return GaussianRounds(noise_multiplier=node_multiplier(settings), count=queries_a_round(settings))


def grouped(rounds: Sequence[GaussianRounds]) -> list[GaussianRounds]:
    """Equal rounds as one entry, which is the same to the accountant."""
    counts: dict[tuple[float, float], int] = {}
    for entry in rounds:
        key = entry.noise_multiplier, entry.rate
        counts[key] = counts.get(key, 0) + entry.count
    return [GaussianRounds(noise_multiplier=z, rate=q, count=count) for (z, q), count in counts.items()]


def read_note(path: Path) -> list[GaussianRounds]:
    """What a note says was spent; nothing, if there is none."""
    if not path.exists():
        return []
    try:
        return [GaussianRounds(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, ConfigError):
        raise DataError(f"The note {path.name} of the privacy budget is damaged.") from None


def write_note(path: Path, rounds: Sequence[GaussianRounds], *, mode: int = 0o666) -> None:
    """Replace a note."""
    atomic_write(path, json.dumps([vars(entry) for entry in rounds]) + "\n", mode=mode)
