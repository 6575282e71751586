"""Tidy tables of an experiment's numbers: one row per number, in the order of the experiment's file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.harness.cells import Cell
from fedanon.harness.tasks.base import CellResult
from fedanon.types import FloatArray

#: coordinates every table shows; others are shown where they vary
CORE = ("grid", "task", "dataset", "label", "method", "settings", "k", "model", "seed")
#: not a place: the list of what is measured
HIDDEN = ("measures",)
#: columns that are not coordinates of a group of seeds
WITHIN = ("cell", "seed", "value", "round")


def results_frame(finished: Iterable[tuple[Cell, CellResult]]) -> pd.DataFrame:
    """Columns: coordinates, cell, measure, value."""
    finished = list(finished)
    shown = _shown_columns([cell.coordinates for cell, _ in finished])
    rows: list[dict[str, Any]] = []
    for cell, result in finished:
        place = {name: cell.coordinates.get(name) for name in shown} | {"cell": cell.key}
        rows += [place | {"measure": name, "value": value} for name, value in result.metrics.items()]
    frame = pd.DataFrame(rows)
    if "k" in frame:
        frame["k"] = frame["k"].astype("Int64")  # methods without k have none
    return frame


def curves_frame(finished: Iterable[tuple[Cell, CellResult]]) -> pd.DataFrame:
    """Columns: cell, measure, round, value; each cell once, and numbers cut to what a figure shows, to be small."""
    once = {cell.key: result.curves for cell, result in finished}
    rows = [
        (key, name, number, value)
        for key, curves in once.items()
        for name, curve in curves.items()
        for number, value in curve.items()
    ]
    frame = pd.DataFrame(rows, columns=["cell", "measure", "round", "value"])
    kinds = {"cell": "category", "measure": "category", "round": "int32"}
    return frame.astype(kinds).assign(value=_quantized(frame["value"].to_numpy(dtype=np.float64)))


def _quantized(values: FloatArray) -> NDArray[np.float32]:
    """Five significant digits."""
    scale = 10.0 ** (4 - np.floor(np.log10(np.abs(np.where(values == 0, 1.0, values)))))
    return (np.round(values * scale) / scale).astype(np.float32)


def _shown_columns(places: list[dict[str, Any]]) -> list[str]:
    """The core, and every other coordinate that is not the same everywhere."""
    names = [name for name in dict.fromkeys(n for place in places for n in place) if name not in HIDDEN]
    # a coordinate only some tasks have does not vary by that alone
    varying = [name for name in names if len({place[name] for place in places if name in place}) > 1]
    return [name for name in CORE if name in names] + [name for name in varying if name not in CORE]


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Over seeds: mean, standard deviation, number and the 95 % interval of the mean (Student's t)."""
    coordinates = [name for name in frame.columns if name not in WITHIN] + (["round"] if "round" in frame else [])
    groups = frame.groupby(coordinates, dropna=False, sort=False)["value"]
    table = groups.agg(mean="mean", sd="std", n="count").reset_index()
    half = _t_quantiles(table["n"].to_numpy()) * table["sd"] / np.sqrt(table["n"])
    return table.assign(low=table["mean"] - half, high=table["mean"] + half)


def against_baseline(frame: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Each number minus that of the baseline at the same place and seed; places without a baseline are left out."""
    place = [n for n in frame.columns if n not in ("label", "method", "settings", "k", "cell", "value")]
    reference = frame[frame["label"] == baseline].drop_duplicates(place).set_index(place)["value"]
    reference = reference.rename("baseline")
    joined = frame[frame["label"] != baseline].join(reference, on=place, how="inner")
    return joined.assign(value=joined["value"] - joined["baseline"]).drop(columns="baseline")


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """A summary with one row per place and one column per metric, texts such as '0.8242 ± 0.0032'."""
    place = [n for n in table.columns if n not in ("measure", "mean", "sd", "n", "low", "high")]
    texts = table.assign(text=[_with_interval(m, h) for m, h in zip(table["mean"], table["high"], strict=True)])
    order = list(dict.fromkeys(table["measure"]))
    rows = texts.groupby(place, dropna=False, sort=False)
    lines = [dict(zip(place, key, strict=True)) | dict(zip(g["measure"], g["text"], strict=True)) for key, g in rows]
    return pd.DataFrame(lines, columns=[*place, *order])


def _with_interval(mean: float, high: float) -> str:
    half = high - mean
    return f"{mean:.4g}" if not half > 0 else f"{mean:.4g} ± {half:.2g}"


def _t_quantiles(n: Any) -> Any:
    """97.5 % quantiles of Student's t with n - 1 degrees of freedom; NaN for a single seed."""
    from scipy.stats import t

    return np.where(n > 1, t.ppf(0.975, np.maximum(n - 1, 1)), np.nan)


def matching(frame: pd.DataFrame, place: Mapping[str, Any]) -> pd.DataFrame:
    """The rows at a place; a missing coordinate matches a missing one."""
    chosen = pd.Series(True, index=frame.index)
    for name, value in place.items():
        chosen &= frame[name].isna() if pd.isna(value) else frame[name] == value
    return frame[chosen]
