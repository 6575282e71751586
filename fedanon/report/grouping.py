"""Where the numbers of a grid stand: which coordinates vary, and how they divide a figure into panels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pandas as pd

from fedanon.harness.frames import WITHIN

#: not a reason for a panel of its own: the series, the axes and what is measured
_NOT_PANELS = frozenset({"grid", "task", "label", "method", "settings", "series", "k", "measure", *WITHIN})
#: what a model is told; the releases it learns from do not depend on it
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
#: measures in the order in which they are looked for
LOSS = ("ncp", "ncp_published", "il", "ncp_all_columns", "il2")
RISK = (
    "linkage_expected_share",
    "linkage_expected",
    "linkage_thesis",
    "linkage_first",
    "dld",
    "prosecutor_risk_average",
)
RANKING = ("auc_holdout", "auc_pooled", "auc", "auc_client_mean", "auc_client_mean_last20")
LABELLING = ("accuracy_holdout", "accuracy", "accuracy_last20", "f1_macro")


def with_series(frame: pd.DataFrame) -> pd.DataFrame:
    """Adds ``series``: the label, with the settings by which it differs where one label stands for several.

    Tasks without a method have no k and no settings; here they have empty ones.
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
    """Such as ', epsilon 0.1, k 5': what tells settings, as JSON, from each other; nothing where all are alike."""
    read = {text: json.loads(text) if text else {} for text in settings.unique()}
    names = sorted({name for one in read.values() for name in one})
    telling = [name for name in names if len({repr(one.get(name)) for one in read.values()}) > 1]
    texts = {
        text: "".join(f", {name.replace('_', ' ')} {one[name]}" for name in telling if name in one)
        for text, one in read.items()
    }
    return settings.map(texts)


def first_of(frame: pd.DataFrame, names: Iterable[str]) -> str | None:
    """The first measure of ``names`` that the frame has."""
    present = set(frame["measure"])
    return next((name for name in names if name in present), None)


def several(values: pd.Series) -> bool:
    """Whether there is more than one value; a missing one is one of them."""
    return len(values.drop_duplicates()) > 1


def varying(frame: pd.DataFrame) -> list[str]:
    """Coordinates, other than the method and k, that differ within the frame."""
    return [name for name in frame.columns if name not in _NOT_PANELS and several(frame[name])]


def of_releases(frame: pd.DataFrame) -> pd.DataFrame:
    """Measures of releases once, though many models learned from them."""
    kept = [name for name in frame.columns if name not in _OF_MODELS and name != "cell"]
    return frame[kept].drop_duplicates([name for name in kept if name != "value"])


def panels_of(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Parts of a frame in which nothing varies but method, k and seed, each with a title."""
    names = varying(frame)
    if not names:
        yield "", frame
        return
    for values, part in frame.groupby(names, dropna=False, sort=False):
        yield place_text(dict(zip(names, values, strict=True))), part


def place_text(place: dict[str, object]) -> str:
    """Such as 'adult, xgb, clients 10'."""
    plain = ("dataset", "model", "partition", "protocol", "strategy")
    parts = [str(v) if name in plain else f"{name} {v}" for name, v in place.items() if not pd.isna(v)]  # type: ignore[call-overload]
    return ", ".join(parts)
