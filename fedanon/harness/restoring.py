"""Finished cells: from their files, or from the stored tables of an experiment where those files are not kept.

A repository holds tables and manifest, and not one file per cell. A cell of today's experiment file is found in them
if the file they were made from asked for the same task with the same parameters; the code that computed it is told by
the manifest, so that what is stale stays stale.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.errors import FedanonError
from fedanon.harness.cells import Cell, CellStore, StoredCell
from fedanon.harness.experiment import Experiment, read_cells
from fedanon.harness.result_set import ResultSet, read_results
from fedanon.harness.tasks.base import CellResult

#: of a cell whose manifest does not say which of several versions computed it
UNRECORDED = "unrecorded"


def finished_cells(experiment: Experiment, folder: Path) -> dict[str, StoredCell]:
    """The finished cells of an experiment by key, in the order of its file."""
    store = CellStore(folder)
    if not store.folder.exists():
        return _from_tables(experiment, folder)
    found = {cell.key: store.read(cell.key) for cell in experiment.cells}
    return {key: stored for key, stored in found.items() if stored is not None}


def restore_cells(experiment: Experiment, folder: Path) -> None:
    """Write a file for every finished cell that only the tables hold, so that a run goes on from there."""
    store = CellStore(folder)
    if not store.folder.exists():
        for key, stored in _from_tables(experiment, folder).items():
            store.write(key, stored)


def _from_tables(experiment: Experiment, folder: Path) -> dict[str, StoredCell]:
    try:
        found = read_results(folder)
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # it has the names of its time
            former = [(_identity(cell), cell.coordinates) for cell in read_cells(found.manifest["config"], Path())]
    except (FedanonError, KeyError):
        return {}  # no results, or of a file that this version cannot read: all is computed anew
    wanted = {_identity(cell): cell.key for cell in experiment.cells}
    places = [name for name in found.results.columns if name not in ("cell", "measure", "value")]
    numbers = _by_place(found.results, places)
    seconds = float(found.manifest["cell_seconds"]) / max(int(found.manifest["finished"]), 1)
    codes, curves = _codes(found), _curves(found.curves)
    restored = {}
    for identity, coordinates in former:
        key, at = wanted.get(identity), _place(coordinates, places)
        if key is not None and at in numbers:
            name, metrics = numbers[at]
            code = codes.get(name, UNRECORDED)
            restored[key] = StoredCell(CellResult(metrics, curves.get(name, {})), round(seconds, 3), code)
    return {cell.key: restored[cell.key] for cell in experiment.cells if cell.key in restored}


def _identity(cell: Cell) -> str:
    """What is computed, by its parameters; the data and the version, which the key holds too, may have changed."""
    return json.dumps([cell.kind, cell.task.stored()], sort_keys=True)


def _by_place(results: pd.DataFrame, places: list[str]) -> dict[tuple[str, ...], tuple[str, dict[str, float]]]:
    """The stored name and the metrics of every cell, by its coordinates."""
    found = {}
    for name, rows in results.groupby(["cell", "grid"], sort=False):
        at = _place(rows.iloc[0], places)
        metrics = dict(zip(rows["measure"], rows["value"].astype(float), strict=True))
        found[at] = (str(name[0]), metrics)
    return found


def _place(values: Mapping[str, Any] | pd.Series, places: list[str]) -> tuple[str, ...]:
    return tuple(_text(values.get(name)) for name in places)


def _text(value: Any) -> str:
    """A coordinate as a table holds it: 1 and 1.0 are the same, and so are nothing and a missing one."""
    if value is None or pd.isna(value):
        return ""
    try:
        return f"{float(value):.10g}"
    except ValueError:
        return str(value)


def _codes(found: ResultSet) -> dict[str, str]:
    """The hash of the code by the stored name of a cell."""
    manifest = found.manifest
    if "cell_code" in manifest:
        return {key: code for code, keys in manifest["cell_code"].items() for key in keys}
    (code, *others) = manifest["code"]
    return {} if others else dict.fromkeys(found.results["cell"].astype(str), code)


def _curves(frame: pd.DataFrame) -> dict[str, dict[str, dict[int, float]]]:
    found: dict[str, dict[str, dict[int, float]]] = {}
    if len(frame):
        for (cell, measure), rows in frame.groupby(["cell", "measure"], sort=False):
            points = zip(rows["round"].astype(int), rows["value"].astype(float), strict=True)
            found.setdefault(str(cell), {})[str(measure)] = dict(points)
    return found
