"""Finished cells on disk: one small file each, written whole or not at all, so that a killed run loses nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedanon.data.atomic import atomic_write
from fedanon.errors import DataError
from fedanon.harness.tasks.base import Outcome


@dataclass(frozen=True)
class Stored:
    """A finished cell: what it gave, how long it took, and the hash of the code that computed it."""

    outcome: Outcome
    seconds: float
    code: str


class CellStore:
    """The cells of a result folder, by key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cells"

    def read(self, key: str) -> Stored | None:
        """A finished cell, or None."""
        try:
            content = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            return Stored(_outcome(content["outcome"]), content["seconds"], content["code"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"The result of cell {key} is damaged; remove its file and run again.") from None

    def write(self, key: str, stored: Stored) -> None:
        """Keep a finished cell."""
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_write(self.folder / f"{key}.json", json.dumps(asdict(stored), indent=1) + "\n")


def _outcome(content: dict[str, Any]) -> Outcome:
    # JSON has only texts as keys
    curves = {name: {int(number): value for number, value in c.items()} for name, c in content["curves"].items()}
    return Outcome(dict(content["measures"]), curves, tuple(content["notes"]))
