"""A result set: tidy tables and a manifest in one folder. The same cells give the same bytes, whenever they ran.

results.csv, results.parquet     one row per number
curves.parquet                   numbers by cell, metric and round, where there are rounds; five significant digits
comparison.csv                   published beside ours, where something is published
manifest.json                    experiment, versions, data, machine, seeds, failures; timings are only here
cells/                           the finished cells, from which a run goes on
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.errors import DataError
from fedanon.harness.cells import Cell, CellStore, StoredCell
from fedanon.harness.comparison import with_published
from fedanon.harness.experiment import Experiment
from fedanon.harness.findings import Evaluated, evaluate_findings
from fedanon.harness.frames import curves_frame, results_frame
from fedanon.harness.provenance import machine, versions
from fedanon.harness.reach import start_modules
from fedanon.io.atomic import atomic_write

MANIFEST = "manifest.json"
CURVES = "curves.parquet"


@dataclass(frozen=True)
class ResultSet:
    """What an experiment gave, read back from its folder."""

    folder: Path
    results: pd.DataFrame
    curves: pd.DataFrame
    comparison: pd.DataFrame
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return str(self.manifest["experiment"])


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest alone, without the tables."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError(f"The folder {folder} holds no result set; run the experiment first.") from None
    return manifest


def read_results(folder: Path) -> ResultSet:
    """Read a result set; curves and comparison are empty where there are none."""
    manifest = read_manifest(folder)
    try:
        results, comparison = (_read_csv(folder / f"{name}.csv") for name in ("results", "comparison"))
        curves = _read_curves(folder / CURVES, results)
    except (OSError, ValueError):
        raise DataError(f"The folder {folder} holds no result set; run the experiment first.") from None
    return ResultSet(folder, results, curves, comparison, manifest)


def write_results(
    experiment: Experiment, folder: Path, failures: Mapping[str, str], run: Mapping[str, Any] | None = None
) -> None:
    """Collect the finished cells of an experiment into its tables and its manifest.

    ``run`` are facts about the run that computed them; without any, those of the run before stay.
    """
    store = CellStore(folder)
    stored = [(cell, store.read(cell.key)) for cell in experiment.cells]
    finished = [(cell, found) for cell, found in stored if found is not None]
    found_results = [(cell, found.result) for cell, found in finished]
    results = results_frame(found_results)
    folder.mkdir(parents=True, exist_ok=True)
    _write_csv(folder / "results.csv", results)
    _write_parquet(folder / "results.parquet", results)
    _write_parquet(folder / CURVES, curves_frame(found_results), compression="zstd", use_byte_stream_split=["value"])
    comparison = with_published(results, experiment.published) if len(results) else pd.DataFrame()
    _write_csv(folder / "comparison.csv", comparison)
    manifest = _manifest(experiment, finished, failures) | {"run": run or _earlier_run(folder)}
    evaluated = evaluate_findings(experiment.findings, results, comparison, experiment.baseline)
    manifest["findings"] = [one.to_dict() for one in evaluated]
    atomic_write(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")


def store_findings(
    experiment: Experiment, found: ResultSet, comparison: pd.DataFrame, evaluated: Iterable[Evaluated]
) -> None:
    """State and compare stored results as the experiment's file does now; the cells, and what ran them, stay."""
    _write_csv(found.folder / "comparison.csv", comparison)
    said = {"findings": [one.to_dict() for one in evaluated], "remarks": list(experiment.remarks)}
    names = {"title": experiment.title, "about": experiment.about, "baseline": experiment.baseline}
    atomic_write(found.folder / MANIFEST, json.dumps(found.manifest | names | said, indent=2) + "\n")


def _earlier_run(folder: Path) -> dict[str, Any]:
    try:
        return dict(read_manifest(folder)["run"])
    except (DataError, KeyError):
        return {}


def _manifest(
    experiment: Experiment, finished: list[tuple[Cell, StoredCell]], failures: Mapping[str, str]
) -> dict[str, Any]:
    cells = {cell.key: cell for cell in experiment.cells}
    codes = Counter({cell.key: found.code for cell, found in finished}.values())
    data: dict[str, str] = {}
    for cell in experiment.cells:
        data |= cell.task.data_hashes()
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "about": experiment.about,
        "baseline": experiment.baseline,
        "findings": [],
        "remarks": list(experiment.remarks),
        "config": experiment.text,
        "config_sha256": hashlib.sha256(experiment.text.encode()).hexdigest(),
        "versions": versions(),
        "code": dict(codes),
        # from where the code of cells is followed, so that its hash can be made again without their data
        "code_of": {cell.code: start_modules(cell.task) for cell in cells.values() if cell.code in codes},
        "cell_code": {code: sorted({cell.key for cell, f in finished if f.code == code}) for code in codes},
        "data": data,
        "seeds": sorted({cell.task.seed for cell in experiment.cells}),
        "machine": machine(),
        "cells": len(cells),
        "finished": len({cell.key for cell, _ in finished}),
        "cell_seconds": round(sum({cell.key: found.seconds for cell, found in finished}.values()), 1),
        "failures": [
            {"cell": key, "grid": cells[key].grid, "what": cells[key].describe(), "reason": reason}
            for key, reason in failures.items()
        ],
    }


def _write_parquet(path: Path, frame: pd.DataFrame, **how: Any) -> None:
    """Write a table for programs; one without rows leaves no file of an earlier run behind."""
    if not len(frame):
        path.unlink(missing_ok=True)
        return
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, **how)
    atomic_write(path, buffer.getvalue())


def _read_curves(path: Path, results: pd.DataFrame) -> pd.DataFrame:
    """The curves with the coordinates of their cells, which the table of results holds."""
    if not path.exists():
        return pd.DataFrame()
    places = results.drop(columns=["measure", "value"]).drop_duplicates()
    curves = pd.read_parquet(path).astype({"cell": str, "measure": str, "value": "float64"})
    return places.merge(curves, on="cell", how="inner")


def _write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a table for people and diffs."""
    if not len(frame):
        path.unlink(missing_ok=True)
        return
    atomic_write(path, frame.to_csv(index=False, float_format="%.10g", lineterminator="\n"))


def _read_csv(path: Path) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame()
    types: dict[str, Any] = {"k": "Int64", "cell": str, "settings": str}
    # a method may well be called None; only an empty cell is missing
    return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""], low_memory=False)
