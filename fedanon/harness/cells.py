"""A cell of an experiment: one task with fixed parameters, named by a hash of everything that decides its numbers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedanon.errors import DataError
from fedanon.harness.reach import code_hash, start_modules
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, Task
from fedanon.io.atomic import atomic_write

#: the version since which the same cell gives the same numbers; a release that changes none keeps it, and so what was
#: computed stays known. The hash of the code that computed a cell is stored with it.
NUMBERS = "0.1.0"


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
        """The name of the result. Grid and label are no part of it: they do not change a number."""
        content = {
            "task": TASKS.stored_name(self.kind),
            "parameters": self.task.stored(),
            "data": self.task.data_hashes(),
            "version": NUMBERS,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    @cached_property
    def code(self) -> str:
        """Hash of the code that computes it today."""
        return code_hash(start_modules(self.task))

    @property
    def coordinates(self) -> dict[str, Any]:
        """Where its numbers stand in a table of results."""
        return {"grid": self.grid, "task": TASKS.stored_name(self.kind), "label": self.label, **self.task.stored()}

    def describe(self) -> str:
        """For progress displays and lists of failures."""
        c = self.coordinates
        parts = [self.label, f"k={c['k']}" if c.get("k") else "", c.get("model", ""), c["dataset"], f"seed {c['seed']}"]
        return " ".join(part for part in parts if part)


# ---- Finished cells on disk ----------------------------------------------------------------------


@dataclass(frozen=True)
class StoredCell:
    """A finished cell: what it gave, how long it took, and the hash of the code that computed it."""

    result: CellResult
    seconds: float
    code: str


class CellStore:
    """The cells of a result folder, by key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cells"

    def read(self, key: str) -> StoredCell | None:
        """A finished cell, or None."""
        try:
            content = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            return StoredCell(_read_result(content["outcome"]), content["seconds"], content["code"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"The result of cell {key} is damaged; remove its file and run again.") from None

    def write(self, key: str, cell: StoredCell) -> None:
        """Keep a finished cell."""
        result = cell.result
        outcome = {"measures": result.metrics, "curves": result.curves, "notes": result.notes}
        content = {"outcome": outcome, "seconds": cell.seconds, "code": cell.code}
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_write(self.folder / f"{key}.json", json.dumps(content, indent=1) + "\n")


def _read_result(content: dict[str, Any]) -> CellResult:
    # JSON has only texts as keys
    curves = {name: {int(number): value for number, value in c.items()} for name, c in content["curves"].items()}
    return CellResult(dict(content["measures"]), curves, tuple(content["notes"]))
