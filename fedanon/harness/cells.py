"""A cell of an experiment: one task with fixed parameters, named by a hash of everything that decides its numbers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from fedanon._version import __version__
from fedanon.harness.tasks.base import Task


@dataclass(frozen=True)
class Cell:
    """A task in its place.

    Parameters
    ----------
    grid : name of the grid it belongs to.
    kind : registered name of the task.
    label : what the method is called in tables and figures.
    task : what it computes.
    """

    grid: str
    kind: str
    label: str
    task: Task

    @cached_property
    def key(self) -> str:
        """Names the result. Grid and label are left out: they do not change a number."""
        content = {
            "task": self.kind,
            "parameters": asdict(self.task),
            "data": self.task.data_hashes(),
            "version": __version__,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def coordinates(self) -> dict[str, Any]:
        """Where its numbers stand in a table of results."""
        return {"grid": self.grid, "task": self.kind, "label": self.label, **asdict(self.task)}

    def describe(self) -> str:
        """For progress displays and lists of failures."""
        c = self.coordinates
        parts = [self.label, f"k={c['k']}" if c.get("k") else "", c.get("model", ""), c["dataset"], f"seed {c['seed']}"]
        return " ".join(part for part in parts if part)
