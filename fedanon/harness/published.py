"""Published numbers: a CSV of others' results with the tolerance within which ours should agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.errors import ConfigError

#: columns of a published table that say where a number stands; every other column is a measure
COORDINATES = ("label", "dataset", "k", "model", "partition", "protocol", "strategy")


@dataclass(frozen=True)
class Tolerance:
    """How far ours may be off: a share of the published number, or a distance."""

    limit: float
    relative: bool

    def allows(self, published: float, ours: float) -> bool:
        """Whether the difference is within the limit."""
        scale = abs(published) if self.relative else 1.0
        return abs(ours - published) <= self.limit * scale

    def __str__(self) -> str:
        return f"{100 * self.limit:g} %" if self.relative else f"{self.limit:g}"


@dataclass(frozen=True)
class Published:
    """A published table.

    Parameters
    ----------
    grid : the grid whose numbers it compares with.
    source : where the numbers come from.
    table : coordinates and measures, one row a place.
    tolerances : by measure; a measure without one is shown but not judged.
    """

    grid: str
    source: str
    table: pd.DataFrame
    tolerances: Mapping[str, Tolerance]

    @property
    def coordinates(self) -> list[str]:
        """The columns that say where a number stands."""
        return [name for name in self.table.columns if name in COORDINATES]

    @property
    def measures(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name in self.table.columns if name not in COORDINATES]


def read_published(entry: Mapping[str, Any], folder: Path) -> Published:
    """A table named by ``[[published]]``: file, grid, source and tolerances ('2%' of the number, or 0.01)."""
    missing = [name for name in ("file", "grid", "source") if not isinstance(entry.get(name), str)]
    if missing:
        raise ConfigError(f"a published table needs: {', '.join(missing)}.")
    path = folder / entry["file"]
    try:
        table = pd.read_csv(path, dtype={"label": str, "model": str})
    except (OSError, ValueError):
        raise ConfigError(f"the published table {entry['file']} cannot be read.") from None
    tolerances = {name: _tolerance(name, value) for name, value in entry.get("tolerance", {}).items()}
    unknown = sorted(set(tolerances) - set(table.columns))
    if unknown:
        raise ConfigError(f"the published table {entry['file']} has no column {', '.join(unknown)}.")
    return Published(entry["grid"], entry["source"], table, tolerances)


def _tolerance(name: str, value: Any) -> Tolerance:
    try:
        if isinstance(value, str) and value.endswith("%"):
            return Tolerance(float(value[:-1]) / 100, relative=True)
        return Tolerance(float(value), relative=False)
    except (TypeError, ValueError):
        raise ConfigError(f"the tolerance of {name} must be a number, or a text such as '2%'.") from None
