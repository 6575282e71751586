"""The points of a sweep: one a method, variant and value of its parameter, with means of the measures over seeds."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from fedanon.harness.masking import variant, varied
from fedanon.harness.sweeps import SWEEPS, VARIANTS

#: methods that are swept nowhere by default
OTHER = "other"


def is_sweep(frame: pd.DataFrame) -> bool:
    """Whether some method of a grid stands at several values of its own parameter, under one label."""
    return "settings" in frame and bool(frame.drop_duplicates(["label", "settings"])["label"].duplicated().any())


def points_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a point: label, method, variant, value, family and the measures; in the order of the experiment."""
    mapped = frame["reverse_map"].astype(str).eq("True") if "reverse_map" in frame else False
    named = frame.assign(mapped=mapped)
    place = ["label", "method", "settings", "k", "mapped"]
    rows = []
    for key, part in named.groupby(place, dropna=False, sort=False):
        where = dict(zip(place, key, strict=True))
        rows.append(_named(where) | part.groupby("measure", sort=False)["value"].mean().to_dict())
    return pd.DataFrame(rows)


def _named(where: dict[str, Any]) -> dict[str, Any]:
    settings = json.loads(where["settings"])
    # a method that maps back itself may have been told so among its settings
    mapped = bool(where["mapped"]) or bool(settings.pop("reverse_map", False))
    values = settings | ({} if pd.isna(where["k"]) else {"k": int(where["k"])})
    method = str(where["method"])
    sweep = SWEEPS.get(method)
    return {
        "label": where["label"],
        "method": method,
        "variant": variant(settings, reverse_map=mapped),
        "value": varied(values),
        "family": OTHER if sweep is None else sweep.family,
    }


def variant_style(name: str) -> int:
    """The looks of a variant, the same in every panel."""
    return VARIANTS.index(name)
