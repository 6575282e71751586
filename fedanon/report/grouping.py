"""Grouping the numbers of a grid: which coordinates vary, and how they divide a figure into panels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pandas as pd

from fedanon.harness.frames import WITHIN

#: coordinates that never divide panels: the series, the axes and the metric
_NOT_PANELS = frozenset({"grid", "task", "label", "method", "settings", "series", "k", "measure", *WITHIN}) | {
    *("wire", "thresholds", "instances"),  # what is sent is part of a defense, which has a label
}
#: settings of models; the releases they learn from do not depend on them
_OF_MODELS = frozenset(
    {
        "model",
        "model_settings",
        "strategy",
        "strategy_settings",
        "rounds",
        "clients_per_round",
        "evaluate_every",
        "holdout",
    }
)
#: the series of a task without a method
ALL_DATA = "all data"
#: metrics in the order in which they are looked for
LOSS = ("ncp", "ncp_published", "il", "ncp_all_columns", "il2")
RISK = (
    "rebuilt",
    "linkage_expected_share",
    "linkage_expected",
    "linkage_thesis",
    "linkage_first",
    "dld",
    "prosecutor_risk_average",
)
RANKING = ("auc_holdout", "auc_pooled", "auc", "auc_client_mean", "auc_client_mean_last20")
LABELING = ("accuracy_holdout", "accuracy", "accuracy_last20", "f1_macro")


def with_series(frame: pd.DataFrame) -> pd.DataFrame:
    """Add ``series``: the label, plus the settings that differ if one label stands for several.

    Tasks without a method have no k and no settings; they get empty ones.
    """
    if "k" not in frame:
        frame = frame.assign(k=pd.array([pd.NA] * len(frame), dtype="Int64"), settings="")
    label = frame["label"].astype(object).where(frame["label"].notna(), ALL_DATA).astype(str)
    named = (
        frame["settings"]
        .astype(object)
        .fillna("")
        .astype(str)
        .groupby([frame["grid"], label], dropna=False)
        .transform(_differing)
    )
    return frame.assign(series=label + named)


def _differing(settings: pd.Series) -> pd.Series:
    """Return what distinguishes settings, given as JSON, such as ', epsilon 0.1, k 5'; empty if all are alike."""
    read = {text: json.loads(text) if text else {} for text in settings.unique()}
    names = sorted({name for one in read.values() for name in one})
    differing = [name for name in names if len({repr(one.get(name)) for one in read.values()}) > 1]
    texts = {
        text: "".join(f", {name.replace('_', ' ')} {one[name]}" for name in differing if name in one)
        for text, one in read.items()
    }
    return settings.map(texts)


def first_of(frame: pd.DataFrame, names: Iterable[str]) -> str | None:
    """Return the first metric of ``names`` that the frame has."""
    present = set(frame["measure"])
    return next((name for name in names if name in present), None)


def several(values: pd.Series) -> bool:
    """Return whether there is more than one value; a missing value counts as one."""
    return len(values.drop_duplicates()) > 1


def varying(frame: pd.DataFrame) -> list[str]:
    """Return the coordinates, other than the method and k, that differ within the frame."""
    return [name for name in frame.columns if name not in _NOT_PANELS and several(frame[name])]


def of_releases(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep the metrics of each release once, even if many models learned from it."""
    kept = [name for name in frame.columns if name not in _OF_MODELS and name != "cell"]
    return frame[kept].drop_duplicates([name for name in kept if name != "value"])


def panels_of(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the parts of a frame in which only method, k and seed vary, each with a title."""
    names = varying(frame)
    if not names:
        yield "", frame
        return
    for values, part in frame.groupby(names, dropna=False, sort=False):
        yield place_text(dict(zip(names, values, strict=True))), part


def place_text(place: dict[str, object]) -> str:
    """Describe coordinates, such as 'adult, xgb, nodes 10'."""
    plain = ("dataset", "model", "partition", "protocol", "strategy")
    parts = [str(v) if name in plain else f"{name} {v}" for name, v in place.items() if not pd.isna(v)]  # type: ignore[call-overload]
    return ", ".join(parts)
