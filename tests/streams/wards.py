"""Readings of a made-up ward: a schema, and people who come, leave and come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.streams.publication import Publication
from fedanon.streams.space import box_texts

SCHEMA: dict[str, Any] = {
    "name": "ward",
    "person_id": "patient",
    "attributes": {
        "patient": {"role": "identifying"},
        "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 100], "integer": True},
        "unit": {
            "role": "quasi_identifying",
            "type": "categorical",
            "taxonomy": {"Surgery": ["cardiac", "trauma"], "Medicine": ["oncology", "general", "renal"]},
        },
        "time": {"role": "insensitive", "type": "numeric", "range": [0, 10_000_000]},
        "pressure": {"role": "sensitive", "type": "numeric", "range": [0, 300], "integer": True},
    },
}
QUASI = ["age", "unit"]
UNITS = ["cardiac", "trauma", "oncology", "general", "renal"]


def schema(**changes: Any) -> Schema:
    document = {name: value for name, value in (SCHEMA | changes).items() if value is not None}
    return Schema.from_dict(document)


def readings(
    seed: int, people: int, count: int, *, gap: float = 30.0, absent: float = 0.3, birthdays: float = 0.0
) -> pd.DataFrame:
    """``count`` readings of people who fall silent at random for a while and come back."""
    rng = np.random.default_rng(seed)
    age, unit = rng.integers(0, 101, people), rng.integers(0, len(UNITS), people)
    level = rng.integers(70, 180, people)
    time = np.cumsum(rng.exponential(gap / people, count))
    # a person is away in some of the stretches into which the time is cut
    stretch = (time // max(time[-1] / 12, 1e-9)).astype(int)
    away = rng.random((people, stretch.max() + 1)) < absent
    who = rng.integers(0, people, count)
    keep = ~away[who, stretch]
    grown = np.minimum(age[who] + (rng.random((people, count)) < birthdays).cumsum(axis=1)[who, np.arange(count)], 100)
    frame = pd.DataFrame(
        {
            "patient": [f"p{i}" for i in who],
            "age": grown,
            "unit": np.array(UNITS)[unit[who]],
            "time": time,
            "pressure": np.clip(level[who] + rng.integers(-9, 10, count), 0, 300),
        }
    )
    return frame[keep].reset_index(drop=True)


def table(frame: pd.DataFrame, **changes: Any) -> Table:
    return Table.from_frame(frame, schema(**changes))


def messages(made: Table, publications: list[Publication], *, people: bool = True) -> list[list[dict[str, Any]]]:
    """What an observer reads, with the person of each message added as ``_person``."""
    shown: list[list[dict[str, Any]]] = []
    for publication in publications:
        box = publication.box
        if box is None:
            continue
        cells = box_texts(made.columns, np.array(box.low), np.array(box.high))
        batch = []
        for i, number in enumerate(publication.numbers):
            message: dict[str, Any] = {**cells, "pressure": int(made.frame["pressure"].iloc[number])}
            if people and made.persons is not None:
                message["_person"] = int(made.persons[number])
            if publication.pseudonyms:
                message |= {"pseudonym": publication.pseudonyms[i], "epoch": publication.epoch, "class": box.label}
            batch.append(message)
        shown.append(batch)
    return shown
