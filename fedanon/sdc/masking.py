"""Ways to mask the numbers of a table, and their comparison by risk and loss."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError, FedanonError
from fedanon.fields import build
from fedanon.io.atomic import atomic_write
from fedanon.metrics import evaluate
from fedanon.release.release import Release
from fedanon.sdc.methods.numeric import NumericPerturbation
from fedanon.sdc.methods.pipeline import Pipeline
from fedanon.sdc.methods.step import Step

#: zeros stay zero and nothing becomes negative (Morais 2022, tables 34 to 39)
RESTRICTED = {"keep_zeros": True, "non_negative": True}


@dataclass(frozen=True)
class Masking:
    """A method with its settings; ``reverse_map`` publishes the original values in the order of the result."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    reverse_map: bool = False

    def release(self, table: Table, seed: int) -> Release:
        """Mask the table; a method that cannot map back by itself is followed by a step that does."""
        component = ANONYMIZERS[self.method]
        if not self.reverse_map:
            if component.numeric_only and any(column.has_missing for column in table.columns):
                # a step takes missing numbers, the method itself does not
                return Pipeline((Step(self.method, (), self.settings),)).anonymize(table, rng=seed)
            return build(component, self.settings).anonymize(table, rng=seed)
        if issubclass(component, NumericPerturbation):
            return build(component, {**self.settings, "reverse_map": True}).anonymize(table, rng=seed)
        return Pipeline((Step(self.method, (), self.settings), Step("reverse_mapping"))).anonymize(table, rng=seed)

    @property
    def variant(self) -> str:
        """What is done in addition to the method itself."""
        return variant(self.settings, reverse_map=self.reverse_map)

    @property
    def varied(self) -> str:
        """The settings that do not make a variant, such as ``c=0.1``."""
        return varied(self.settings)


def variant(settings: Mapping[str, Any], *, reverse_map: bool) -> str:
    """Return one of 'plain', 'reverse mapped', 'restricted', 'restricted, reverse mapped'."""
    parts = ["restricted"] * bool(settings.get("non_negative")) + ["reverse mapped"] * reverse_map
    return ", ".join(parts) or "plain"


def varied(settings: Mapping[str, Any]) -> str:
    """Return the settings as text, without those that make a variant."""
    return ", ".join(f"{name}={_short(value)}" for name, value in settings.items() if name not in RESTRICTED)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---- comparison ----------------------------------------------------------------------------------

#: what identifies a row of a comparison
PLACE = ("method", "variant", "parameters")
#: metrics of every row; the first two are the axes by default
DEFAULT_METRICS = ("dld", "il2", "interval_risk", "mae_correlation", "gini_difference")
#: the same where categories are compared: records found again by all keys, and what the release leaves open of a key
CATEGORY_METRICS = (
    "linkage_expected_share",
    "conditional_entropy",
    "violations_3",
    "violations_3_sdcmicro",
    "expected_reidentifications",
    "contingency_ut1",
    "categories_changed",
    "new_missing",
)

OnRow = Callable[[Masking], None]


def compare_maskings(
    table: Table, plan: Sequence[Masking], metrics: Sequence[str], seed: int, on_start: OnRow | None = None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return one row per masking (method, variant, parameters, metrics, seconds), and why others failed, by method."""
    rows: list[dict[str, Any]] = []
    failures: dict[str, str] = {}
    for masking in plan:
        if on_start is not None:
            on_start(masking)
        try:
            rows.append(_row(table, masking, metrics, seed))
        except FedanonError as error:
            failures.setdefault(_failed(masking), str(error))
    return pd.DataFrame(rows, columns=[*PLACE, *metrics, "seconds"]), failures


def _failed(masking: Masking) -> str:
    return masking.method if masking.variant == "plain" else f"{masking.method}, {masking.variant}"


def _row(table: Table, masking: Masking, metrics: Sequence[str], seed: int) -> dict[str, Any]:
    start = time.perf_counter()
    release = masking.release(table, seed)
    seconds = time.perf_counter() - start
    place = dict(zip(PLACE, (masking.method, masking.variant, masking.varied), strict=True))
    return {**place, **evaluate(table, release, metrics), "seconds": round(seconds, 4)}


def described(row: Mapping[Any, Any]) -> str:
    """Describe a row, such as 'romm, magnitude=0.05, reverse mapped'."""
    variant = "" if row["variant"] == "plain" else row["variant"]
    return ", ".join(filter(None, (row["method"], row["parameters"], variant)))


def write_comparison(path: Path, rows: pd.DataFrame, facts: Mapping[str, Any]) -> None:
    """Write CSV (the rows alone) or JSON (with ``facts``), by the file's ending."""
    refuse_other_endings(path)
    if path.suffix.lower() == ".csv":
        atomic_write(path, rows.to_csv(index=False, float_format="%.10g", lineterminator="\n"))
        return
    # pandas writes missing numbers as null
    atomic_write(path, json.dumps({**facts, "rows": json.loads(rows.to_json(orient="records"))}, indent=2) + "\n")


def read_comparison(path: Path) -> pd.DataFrame:
    """Read the rows of a file that :func:`write_comparison` wrote."""
    refuse_other_endings(path)
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".csv":
            rows = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
        else:
            rows = pd.DataFrame(json.loads(text)["rows"])
    except FileNotFoundError:
        raise DataError(f"The comparison {path} does not exist.") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"The comparison {path.name} cannot be read.") from None
    if absent := [name for name in PLACE if name not in rows]:
        raise DataError(f"The file {path.name} is not a comparison: it has no column {', '.join(absent)}.")
    rows["parameters"] = rows["parameters"].fillna("")
    return rows


def refuse_other_endings(path: Path) -> None:
    """Raise ConfigError unless the file is CSV or JSON."""
    if path.suffix.lower() not in (".csv", ".json"):
        raise ConfigError("The name of a comparison must end in .csv or .json.")
