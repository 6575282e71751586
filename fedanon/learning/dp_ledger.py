"""A node's ledger: what its rows have given away with noise, over all runs. The server is not trusted to count it.

The context in which Flower keeps what a node has answered lasts for one run, and a server can start the same run again:
noise drawn anew every time averages out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fedanon.errors import DataError, RefusedError
from fedanon.io.atomic import atomic_write, held
from fedanon.learning.dp_training import ROUNDING, grouped, node_round, read_note, write_note
from fedanon.learning.settings import RunSettings
from fedanon.privacy.accounting.accountant import GaussianRounds, keeps


def former(config: Mapping[str, Any], name: str, old: str, default: float) -> Any:
    """An entry of a node config, also by its old name: what a node insists on is never lost by a renaming."""
    return config.get(name, config.get(old, default))


class NoisyCounts(Protocol):
    """What the ledger asks of a method by which nodes count together."""

    @property
    def noisy(self) -> bool:
        """Whether counts have noise."""

    @property
    def randomness(self) -> str:
        """Where the noise comes from."""

    @property
    def epsilon(self) -> float:
        """What all counts of a protocol cost a node."""


@dataclass(frozen=True, kw_only=True)
class NodeLedger:
    """What a node asks of runs, and the file in which it counts them.

    Parameters
    ----------
    max_epsilon : of all runs together.
    max_delta : at which it is counted.
    trust_server : take part also where the server adds the noise, and counts it.
    path : of the file; None counts nothing.
    """

    max_epsilon: float
    max_delta: float
    trust_server: bool = False
    path: Path | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> NodeLedger | None:
        """The ledger of a node whose config asks for a budget."""
        if not (most := float(former(config, "max-epsilon", "most-epsilon", 0))):
            return None
        path = str(config.get("ledger", ""))
        return cls(
            max_epsilon=most,
            max_delta=float(former(config, "max-delta", "most-delta", 0)),
            trust_server=bool(config.get("trust-server", False)),
            path=Path(path) if path else None,
        )

    def check(self, settings: RunSettings) -> None:
        """Raise RefusedError unless the run promises what this node asks for."""
        dp = settings.dp
        if dp is None or dp.epsilon > self.max_epsilon:
            raise RefusedError(
                "budget", f"This node takes part only with a privacy budget of at most {self.max_epsilon:g}."
            )
        if dp.delta > self.max_delta:
            raise RefusedError("budget", f"This node takes part only with a delta of at most {self.max_delta:g}.")
        if dp.randomness != "secure":
            raise RefusedError("budget", "This node takes part only with secure noise: the server knows the seed.")
        if dp.mode == "central" and not self.trust_server:
            raise RefusedError(
                "budget", "This node takes part only if it adds the noise itself: not in mode 'central'."
            )

    def spend(self, settings: RunSettings) -> None:
        """Note one round before it is answered, or refuse it: with those of all runs it would cost too much.

        What a server that is trusted adds noise to, it counts.
        """
        assert settings.dp is not None
        if self.path is None or settings.dp.mode == "central":
            return
        with held(self.path):
            spent = grouped([*read_note(self.path), node_round(settings)])
            self._check_spent(spent, _read_counts(self.path))
            write_note(self.path, spent, mode=0o600)

    # ---- counts of anonymizing together ---------------------------------------------------------

    def check_counts(self, method: NoisyCounts) -> None:
        """Raise RefusedError unless counts have the noise this node asks for."""
        if not method.noisy or method.randomness != "secure" or method.epsilon > self.max_epsilon:
            raise RefusedError(
                "budget",
                f"This node counts together only with secure noise and a budget of at most {self.max_epsilon:g}.",
            )

    def spend_counts(self, method: NoisyCounts) -> None:
        """Note all questions of a protocol before the first is answered, or refuse them.

        Their epsilon (pure) and that of training sum up (basic composition).
        """
        if self.path is None:
            return
        with held(self.path):
            counted = [*_read_counts(self.path), method.epsilon]
            self._check_spent(read_note(self.path), counted)
            atomic_write(_counts_file(self.path), json.dumps(counted) + "\n", mode=0o600)

    def _check_spent(self, trained: list[GaussianRounds], counted: list[float]) -> None:
        left = self.max_epsilon * (1 + ROUNDING) - sum(counted)
        if left < 0 or not keeps(trained, left, self.max_delta):
            raise RefusedError(
                "budget", f"The rows of this node have given away what a privacy budget of {self.max_epsilon:g} allows."
            )


def _counts_file(path: Path) -> Path:
    return path.with_name(f"{path.stem}_counts.json")


def _read_counts(path: Path) -> list[float]:
    """The epsilon of every protocol whose questions were answered."""
    file = _counts_file(path)
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
        if min(found, default=0.0) < 0:
            raise ValueError
        return [float(epsilon) for epsilon in found]
    except (OSError, ValueError, TypeError):
        raise DataError(f"The note {file.name} of the privacy budget is damaged.") from None
