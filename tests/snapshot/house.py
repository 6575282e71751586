"""All that the snapshots know of fedanon. Whoever moves or renames a module changes this file, and no hash.

The tables are files (`tables/`), read the way the README shows, so that little of the inside is named here.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon import ANONYMIZERS, Schema, Table
from fedanon.datasets import load
from fedanon.errors import FedanonError
from fedanon.federated.simulation import simulate_nodes
from fedanon.joint.node import make_node
from fedanon.learning.settings import RunSettings
from tests.cli.conftest import Outcome, Run, run
from tests.snapshot.steady import steady_json, steady_text

#: what a name is called now -> what it was called when the hashes were recorded: keys of JSON and of claims at any
#: depth, names of methods, of their parameters and of error classes. An entry keeps the hashes through a renaming.
RENAMED: dict[str, str] = {
    "releases": "hospitals",
    "nodes": "clients",
    "nodes-per-round": "clients-per-round",
    "malicious": "hostile",
    "malicious-attack": "tampering",
    "malicious-settings": "tampering-settings",
    "node": "client",
    "unresponsive": "silent",
}

TABLES = Path(__file__).parent / "tables"
#: what becomes of missing values in each table
MISSING = {"patients": "category", "visits": "wildcard", "numbers": "error"}

__all__ = ["MISSING", "RENAMED", "TABLES", "Outcome", "Run", "method_names", "old_name", "publish", "run", "train"]


def old_name(name: str) -> str:
    """What it was called when the hashes were recorded."""
    return RENAMED.get(name, name)


def method_names() -> list[str]:
    """Every registered anonymizer."""
    return list(ANONYMIZERS)


# ---- releases -----------------------------------------------------------------------------------


@lru_cache
def read(name: str, schema: str) -> Table:
    """One of the tables, by one of its schemas."""
    frame = pd.read_csv(TABLES / f"{name}.csv", dtype=str)
    return Table.from_frame(frame, Schema.read(TABLES / f"{schema}.toml"), missing=MISSING[name])


def publish(method: str, settings: dict[str, Any], table: str, seed: int) -> str:
    """All that a release shows and claims, as text; the class of the error where the method refuses the table."""
    component = ANONYMIZERS[method]
    takes = {field.name for field in dataclasses.fields(component)}
    anonymizer = component(**{name: value for name, value in settings.items() if name != "k" or "k" in takes})
    schema = "visits_numeric" if table == "visits" and anonymizer.numeric_only else table
    try:
        release = anonymizer.anonymize(read(table, schema), rng=seed)
    except FedanonError as error:
        return f"refused: {old_name(type(error).__name__)}\n"
    claim = release.claim and {"dict": release.claim.to_dict(), "text": release.promise}
    parts = {
        "published": steady_text(release.to_frame().to_csv(lineterminator="\n")),
        "classes": " ".join(map(str, release.classes.labels)),
        "suppressed": " ".join(map(str, np.flatnonzero(release.suppressed))),
        "claim": steady_json(claim, RENAMED),
    }
    return "".join(f"# {name}\n{text.rstrip()}\n" for name, text in parts.items())


# ---- models -------------------------------------------------------------------------------------


def train(clients: int, rows: int, **settings: Any) -> dict[str, str]:
    """Run a federation over the first rows of Adult; its global model, and what it scored and whom it left out."""
    chosen = RunSettings(nodes=clients, **settings)
    table = load("adult").select_rows(np.arange(clients * rows))
    nodes = [make_node(table.select_rows(np.arange(rows) * clients + i), chosen, i) for i in range(clients)]
    outcome = simulate_nodes(nodes, chosen).outcome
    said = {"rounds": outcome.rounds, "rejected": outcome.rejected, "suspects": outcome.suspects}
    return {"model": "".join(map(array_text, outcome.parameters)), "scores": steady_json(said, RENAMED)}


def array_text(array: np.ndarray) -> str:
    """Type, shape and values of an array of parameters; trees travel as the bytes of a text."""
    if array.dtype == np.uint8:
        return array.tobytes().decode() + "\n"
    return f"{array.dtype} {array.shape}\n{steady_text(' '.join(map(repr, array.ravel().tolist())))}\n"
