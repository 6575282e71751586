"""Ours beside others': a result set against a published table, or against another result set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.errors import ConfigError
from fedanon.harness.frames import WITHIN, matching, summary

#: after the coordinates
COLUMNS = ("measure", "published", "ours", "sd", "seeds", "difference", "relative", "tolerance", "within", "source")


def with_published(results: pd.DataFrame, published: Iterable[Published]) -> pd.DataFrame:
    """One row per published number: ours (mean over seeds), the difference, and whether it is within tolerance.

    ``within`` is empty where no tolerance is stated. A number we have not got is empty, and not within a tolerance.
    """
    tables = [_compare(summary(results[results["grid"] == entry.grid]), entry) for entry in published]
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, ignore_index=True)
    place = [name for name in table.columns if name not in COLUMNS]
    return table.reindex(columns=[*place, *COLUMNS])


def _compare(ours: pd.DataFrame, published: Published) -> pd.DataFrame:
    absent = sorted(set(published.coordinates) - set(ours.columns))
    if absent:
        raise ConfigError(f"A published table has the column {', '.join(absent)}, the grid {published.grid!r} has not.")
    rows: list[dict[str, object]] = []
    for place in published.table.to_dict("records"):
        where = {str(name): place[name] for name in published.coordinates}
        here = matching(ours, where)
        given = [metric for metric in published.metrics if not pd.isna(place[metric])]
        rows += [{"grid": published.grid, **where, **_row(here, m, place[m], published)} for m in given]
    return pd.DataFrame(rows)


def _row(here: pd.DataFrame, metric: str, value: float, published: Published) -> dict[str, object]:
    found = here[here["measure"] == metric]
    if len(found) > 1:
        raise ConfigError(f"A published number of {metric} stands for {len(found)} of ours in {published.grid!r}.")
    row: dict[str, object] = {"measure": metric, "source": published.source, "published": value}
    tolerance = published.tolerances.get(metric)
    if tolerance is not None:
        row |= {"tolerance": str(tolerance), "within": False}
    if not len(found):
        return row
    ours = float(found["mean"].iloc[0])
    row |= {"ours": ours, "sd": found["sd"].iloc[0], "seeds": int(found["n"].iloc[0])}
    row |= {"difference": ours - value, "relative": (ours - value) / abs(value) if value else float("nan")}
    return row | ({} if tolerance is None else {"within": tolerance.allows(value, ours)})


def between(ours: pd.DataFrame, theirs: pd.DataFrame, *, tolerance: float = 0.0) -> pd.DataFrame:
    """Places of two result sets whose numbers differ by more than a share ``tolerance``, or that only one of them has.

    Both are means over their seeds.
    """
    left, right = summary(ours), summary(theirs)
    place = [n for n in left.columns if n in right.columns and n not in (*WITHIN, "mean", "sd", "n", "low", "high")]
    both = left[[*place, "mean"]].merge(
        right[[*place, "mean"]], on=place, how="outer", suffixes=("_ours", "_theirs"), indicator="in"
    )
    both["in"] = both["in"].map({"left_only": "ours only", "right_only": "theirs only", "both": "both"})
    difference = (both["mean_ours"] - both["mean_theirs"]).abs()
    differs = difference > tolerance * both["mean_theirs"].abs()
    return both[differs | (both["in"] != "both")].reset_index(drop=True)


# ---- Published numbers ---------------------------------------------------------------------------

#: columns of a published table that say where a number stands; every other column is a metric
COORDINATES = ("label", "dataset", "k", "model", "partition", "protocol", "strategy", "chain")


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
    table : coordinates and metrics, one row per place.
    tolerances : by metric; a metric without one is shown but not judged.
    differs : by metric, how many of ours are known to be off by more than that.
    why : the reason, or that none was found.
    """

    grid: str
    source: str
    table: pd.DataFrame
    tolerances: Mapping[str, Tolerance]
    differs: Mapping[str, int] = field(default_factory=dict)
    why: str = ""

    @property
    def coordinates(self) -> list[str]:
        """The columns that say where a number stands."""
        return [name for name in self.table.columns if name in COORDINATES]

    @property
    def metrics(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name in self.table.columns if name not in COORDINATES]


def read_published(entry: Mapping[str, Any], folder: Path) -> Published:
    """A table named by ``[[published]]``: file, grid, source and tolerances ('2%' of the number, or 0.01)."""
    missing = [name for name in ("file", "grid", "source") if not isinstance(entry.get(name), str)]
    if missing:
        raise ConfigError(f"a published table needs: {', '.join(missing)}.")
    path = folder / entry["file"]
    try:
        table = pd.read_csv(path, dtype={"label": str, "model": str, "chain": str})
    except (OSError, ValueError):
        raise ConfigError(f"the published table {entry['file']} cannot be read.") from None
    tolerances = {name: _tolerance(name, value) for name, value in entry.get("tolerance", {}).items()}
    differs = {str(name): int(number) for name, number in entry.get("differs", {}).items()}
    why = " ".join(str(entry.get("why", "")).split())
    if differs and not why:
        raise ConfigError(f"the published table {entry['file']} says how many numbers differ; say why, too.")
    unknown = sorted((set(tolerances) | set(differs)) - set(table.columns))
    if unknown:
        raise ConfigError(f"the published table {entry['file']} has no column {', '.join(unknown)}.")
    return Published(entry["grid"], entry["source"], table, tolerances, differs, why)


def _tolerance(name: str, value: Any) -> Tolerance:
    try:
        if isinstance(value, str) and value.endswith("%"):
            return Tolerance(float(value[:-1]) / 100, relative=True)
        return Tolerance(float(value), relative=False)
    except (TypeError, ValueError):
        raise ConfigError(f"the tolerance of {name} must be a number, or a text such as '2%'.") from None
