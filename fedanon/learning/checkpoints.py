"""Checkpoints: the state of the server after every round, so that a killed run goes on to the same final model."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.errors import DataError
from fedanon.io.atomic import atomic_write
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters

#: lists of what went wrong -> what they were called once
FAULTS = {"rejected": "rejected", "unresponsive": "silent"}


@dataclass(frozen=True)
class Checkpoint:
    """The server after a round, and all that went wrong until then: updates left out, and nodes without an answer.

    ``evidence`` is what was seen of each node (:mod:`fedanon.learning.suspicion`), ``names`` are those nodes were
    registered under, both by number.
    """

    round_number: int
    parameters: Parameters
    rounds: list[dict[str, Any]]
    rejected: list[dict[str, Any]] = field(default_factory=list)
    unresponsive: list[dict[str, Any]] = field(default_factory=list)
    evidence: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


class Checkpoints:
    """A folder with one file per run; the file's name is a hash of the settings, so runs never mix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def at(cls, folder: str) -> Checkpoints | None:
        """Checkpoints in ``folder``, or none if it is empty."""
        return cls(Path(folder)) if folder else None

    def save(self, settings: RunSettings, checkpoint: Checkpoint) -> None:
        """Replace the run's checkpoint; a crash leaves the old or the new one, never half."""
        self.folder.mkdir(parents=True, exist_ok=True)
        meta = json.dumps(
            {
                "round": checkpoint.round_number,
                "rounds": checkpoint.rounds,
                "rejected": checkpoint.rejected,
                "unresponsive": checkpoint.unresponsive,
                "evidence": checkpoint.evidence,
                "names": checkpoint.names,
            }
        )
        buffer = io.BytesIO()
        arrays = {f"p{i}": array for i, array in enumerate(checkpoint.parameters)}
        np.savez(buffer, meta=np.frombuffer(meta.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
        atomic_write(self._path(settings), buffer.getvalue())

    def last(self, settings: RunSettings) -> Checkpoint | None:
        """The run's checkpoint, if there is one."""
        path = self._path(settings)
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                meta = json.loads(stored["meta"].tobytes())
                parameters = [stored[f"p{i}"] for i in range(len(stored.files) - 1)]
        except (OSError, ValueError, KeyError):
            raise DataError(f"The checkpoint {path.name} is damaged; remove it to start again.") from None
        # files of older versions call a node a client, or do not say what went wrong
        faults: dict[str, Any] = {name: _renamed(meta.get(name, meta.get(old, []))) for name, old in FAULTS.items()}
        more: dict[str, Any] = {name: meta.get(name, {}) for name in ("evidence", "names")}
        return Checkpoint(meta["round"], parameters, meta["rounds"], **faults, **more)

    def _path(self, settings: RunSettings) -> Path:
        return self.folder / f"{self.name(settings)}.npz"

    @staticmethod
    def name(settings: RunSettings) -> str:
        """A hash of the settings; more rounds of the same run continue it, so their number is no part of it."""
        identity = {name: value for name, value in settings.identity().items() if name != "rounds"}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]

    def discard(self, settings: RunSettings) -> None:
        """Forget the run."""
        self._path(settings).unlink(missing_ok=True)


def _renamed(faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"node" if name == "client" else name: value for name, value in fault.items()} for fault in faults]
