"""What a node has answered over all runs: releases, runs, evaluations, counts. The server is not trusted to remember.

Flower keeps a context per run, and a server starts as many runs as it likes; this file outlives them. Everything is
noted before it is done: what fails half-way has been answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedanon.errors import DataError
from fedanon.io.atomic import atomic_write, held

#: days whose counts are kept, and runs
KEPT_DAYS, KEPT_RUNS = 3, 10_000


@dataclass
class RunNote:
    """What one run has been answered.

    Its number is the server's choice: ``settings`` (a hash) and ``peers`` are those it began with.
    """

    day: str
    evaluations: int = 0
    last_scored: int = 0
    counts: int = 0
    last_count: int = 0
    settings: str = ""
    peers: list[int] = field(default_factory=list)
    app_replies: int = 0
    app_bytes: int = 0


@dataclass
class EgressNote:
    """All that the ledger keeps.

    Parameters
    ----------
    runs : by the run's identifier.
    releases : hashes of all releases of a data file by their keys, by its hash; empty where none was made yet.
    protocols : the runs that have counted jointly on a data file, by its hash.
    evaluations : number on each day.
    count_epsilon, score_epsilon : what noisy counts and private scores have cost.
    """

    runs: dict[str, RunNote] = field(default_factory=dict)
    releases: dict[str, dict[str, str]] = field(default_factory=dict)
    protocols: dict[str, list[str]] = field(default_factory=dict)
    evaluations: dict[str, int] = field(default_factory=dict)
    count_epsilon: float = 0.0
    score_epsilon: float = 0.0

    def runs_on(self, day: str) -> int:
        """How many runs began on a day."""
        return sum(run.day == day for run in self.runs.values())

    def forget_old(self) -> None:
        """Drop what no limit looks at any more."""
        for day in sorted(self.evaluations)[:-KEPT_DAYS]:
            del self.evaluations[day]
        for name in sorted(self.runs, key=lambda run: self.runs[run].day)[:-KEPT_RUNS]:
            del self.runs[name]


@dataclass(frozen=True)
class EgressLedger:
    """The file of a node's notes."""

    path: Path

    def begin(self, log: Path) -> None:
        """Make the file, unless there is one; raise DataError if there was one: its log tells of answers."""
        with held(self.path):
            if self.path.exists():
                return
            if log.exists():
                raise DataError(
                    f"The ledger {self.path.name} is gone, though {log.name} tells of answers. Restore it, or move "
                    f"{log.name} away to let everything be asked anew."
                )
            self._write(EgressNote())

    def read(self) -> EgressNote:
        """What has been noted; nothing, if there is no file yet."""
        if not self.path.exists():
            return EgressNote()
        try:
            found: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            runs = {name: RunNote(**run) for name, run in found.pop("runs").items()}
            return EgressNote(runs=runs, **found)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            raise DataError(f"The ledger {self.path.name} of what this node has answered is damaged.") from None

    @contextmanager
    def changing(self) -> Iterator[EgressNote]:
        """The notes, to be changed by one process at a time; nothing is kept if the block raises."""
        with held(self.path):
            note = self.read()
            before = asdict(note)
            yield note
            note.forget_old()
            if asdict(note) != before:
                self._write(note)

    def _write(self, note: EgressNote) -> None:
        atomic_write(self.path, json.dumps(asdict(note), sort_keys=True) + "\n", mode=0o600)
