"""Small tables and releases for the checks, and what all checks ask of a component."""

from __future__ import annotations

import json
import pickle
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from fedanon.anonymizers import Mondrian
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.release.release import Release

WARDS = {"Surgery": ["cardiac", "trauma"], "Medicine": ["cancer", "general", "renal"]}
ILLNESSES = ["asthma", "flu", "gout", "sarcoidosis"]
_QUASI = {"role": "quasi_identifying"}
_COLUMNS: dict[str, dict[str, Any]] = {
    "age": {**_QUASI, "type": "numeric", "range": [0, 100], "integer": True},
    "weight": {**_QUASI, "type": "numeric", "range": [0, 200]},
    "ward": {**_QUASI, "type": "categorical", "taxonomy": WARDS},
    "illness": {"role": "sensitive", "type": "categorical", "values": ILLNESSES},
    "cost": {"role": "sensitive", "type": "numeric", "range": [0, 1000]},
    "note": {"role": "insensitive", "type": "text"},
    "readmitted": {"role": "insensitive", "type": "categorical", "values": ["no", "yes"]},
}
_PATIENT = {"patient": {"role": "identifying", "type": "text"}}


def example_table(
    rows: int = 60,
    *,
    numeric_only: bool = False,
    missing: bool = False,
    several_rows: bool = False,
    spread: int = 40,
    seed: int = 0,
) -> Table:
    """A table of made-up patients; the target ``readmitted`` depends on the age and the ward.

    >>> example_table(3).frame[["age", "ward"]].shape
    (3, 2)

    Parameters
    ----------
    rows : number of rows.
    numeric_only : whether all quasi-identifiers are numbers.
    missing : whether some quasi-identifiers are missing.
    several_rows : whether some people have several rows.
    spread : number of different ages; with few of them many rows are equal.
    seed : of the values.
    """
    rng = np.random.default_rng(seed)
    wards = [ward for family in WARDS.values() for ward in family]
    frame = pd.DataFrame(
        {
            "age": 30.0 + rng.integers(0, spread, rows),
            "weight": np.round(rng.normal(75, 12, rows) / 5) * 5,
            "ward": rng.choice(wards, rows),
            "illness": rng.choice(ILLNESSES, rows, p=[0.4, 0.3, 0.2, 0.1]),
            "cost": np.round(rng.uniform(0, 1000, rows), 2),
            "note": [f"row {i}" for i in range(rows)],
        }
    )
    risk = 0.15 + 0.6 * (frame["age"] > 30 + spread / 2) * (frame["ward"] != "trauma")
    frame["readmitted"] = np.where(rng.random(rows) < risk, "yes", "no")
    columns = {name: column for name, column in _COLUMNS.items() if name != "ward" or not numeric_only}
    document: dict[str, Any] = {"target": "readmitted", "attributes": columns}
    if several_rows:
        document |= {"person_id": "patient", "attributes": {**columns, **_PATIENT}}
        frame["patient"] = [f"p{i}" for i in rng.integers(0, max(rows // 2, 1), rows)]
    if missing:
        frame.loc[rng.random(rows) < 0.2, "age"] = None
    schema = Schema.from_dict(document)
    return Table.from_frame(frame[schema.names], schema, missing="category" if missing else "error")


def example_tables(*, numeric_only: bool = False) -> dict[str, Table]:
    """Tables of every kind a component meets, by what is special about them.

    >>> sorted(example_tables(numeric_only=True))
    ['many equal rows', 'plain', 'several rows per person', 'two rows']
    """
    # a component that is not in order may change what it is given: everybody gets a copy
    return {
        kind: replace(table, frame=table.frame.copy(), codes=table.codes.copy())
        for kind, table in _made_tables(numeric_only=numeric_only).items()
    }


@cache
def _made_tables(*, numeric_only: bool) -> dict[str, Table]:
    tables = {
        "plain": example_table(numeric_only=numeric_only),
        "many equal rows": example_table(80, numeric_only=numeric_only, spread=2, seed=1),
        "several rows per person": example_table(numeric_only=numeric_only, several_rows=True, seed=2),
        "two rows": example_table(2, numeric_only=numeric_only, seed=3),
    }
    return tables if numeric_only else {**tables, "missing values": example_table(missing=True, seed=4)}


def example_release(table: Table, *, k: int = 3, rng: int = 0) -> Release:
    """A release of ``table`` by Mondrian.

    >>> int(example_release(example_table(60)).classes.sizes.min()) >= 3
    True
    """
    return Mondrian(k=k).anonymize(table, rng=rng)


def expect(condition: object, message: str) -> None:
    """Raise AssertionError unless the condition holds; ``assert`` would be silent under ``python -O``."""
    if not condition:
        raise AssertionError(message)


def check_settings(component: Any) -> None:
    """The settings of a component are documented dataclass fields of plain values, and survive pickle and JSON."""
    name = type(component).__name__
    expect(is_dataclass(component), f"{name} must be a dataclass (frozen, kw_only): its parameters are its fields.")
    expect(
        type(component).__dataclass_params__.frozen,
        f"{name} must be frozen: it is shared between runs.",
    )
    expect((type(component).__doc__ or "").strip(), f"{name} needs a docstring: listings show its first paragraph.")
    for entry in fields(component):
        expect(entry.kw_only, f"The parameter {entry.name!r} of {name} must be keyword-only.")
        expect(entry.metadata.get("help"), f"The parameter {entry.name!r} of {name} needs a help text.")
        expect(entry.default_factory is MISSING, f"The default of {entry.name!r} of {name} must be a plain value.")
    settings = asdict(component)
    expect(json.loads(json.dumps(settings)) == settings, f"The settings of {name} must be plain values, as JSON has.")
    if "<locals>" not in type(component).__qualname__:
        expect(pickle.loads(pickle.dumps(component)) == component, f"{name} must survive pickle: workers get a copy.")
