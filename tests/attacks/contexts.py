"""Contexts the tests of attacks share."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from fedanon.anonymizers import ANONYMIZERS
from fedanon.attacks.context import AttackContext
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets import load


@cache
def table_of(dataset: str, rows: int | None = None) -> Table:
    table = load(dataset)
    return table if rows is None else table.select_rows(range(rows))


@cache
def context_of(
    dataset: str, *, rows: int | None = None, method: str = "mondrian", seed: int = 0, **settings: Any
) -> AttackContext:
    return made(table_of(dataset, rows), method, seed=seed, **settings)


def made(table: Table, method: str = "mondrian", *, seed: int = 0, **settings: Any) -> AttackContext:
    anonymizer = ANONYMIZERS[method](**settings)
    return AttackContext(table, anonymizer.anonymize(table, rng=seed), anonymizer, seed)


SMALL = {
    "target": "illness",
    "attributes": {
        "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 100], "integer": True},
        "ward": {
            "role": "quasi_identifying",
            "type": "categorical",
            "taxonomy": {"Surgery": ["cardiac", "trauma"], "Medicine": ["cancer", "general"]},
        },
        "illness": {"role": "sensitive", "type": "text"},
        "cost": {"role": "sensitive", "type": "numeric", "range": [0, 1000]},
    },
}


def small_table(ages: list[int], wards: list[str], illnesses: list[str], costs: list[float] | None = None) -> Table:
    frame = pd.DataFrame({"age": ages, "ward": wards, "illness": illnesses, "cost": costs or [0.0] * len(ages)})
    return Table.from_frame(frame, Schema.from_dict(SMALL))
