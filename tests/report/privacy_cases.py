"""A ward with canaries in it, and the ways to a report about its release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.io.release_file import FileForm, manifest_path, write_release
from fedanon.report.privacy.evidence import ReleaseEvidence

#: values of people that no report may hold
CANARIES = ("Zanzibar", "Xylophone", "QQ7", "qq7")
UNITS = ["Zanzibar", "Timbuktu", "Kathmandu", "Reykjavik"]


def ward_schema() -> Schema:
    """One of each role."""
    tree = Hierarchy.from_nested({"South": UNITS[:2], "North": UNITS[2:]})
    return Schema(
        (
            FreeText("patient", Role.IDENTIFYING),
            Numeric("age", Role.QUASI_IDENTIFYING, 0, 110, True),
            Categorical("town", Role.QUASI_IDENTIFYING, tree),
            FreeText("diagnosis", Role.SENSITIVE),
            FreeText("e-mail", Role.INSENSITIVE),
        ),
        name="ward",
        person_id="patient",
    )


def ward_frame(n: int = 60, *, alike: bool = False) -> pd.DataFrame:
    """``alike`` gives everybody of a town the same diagnosis."""
    rng = np.random.default_rng(0)
    town = rng.integers(0, 4, n)
    illness = ["Xylophone", "flu", "asthma"]
    return pd.DataFrame(
        {
            "patient": [f"QQ7-{i:03d}" for i in range(n)],
            "age": rng.integers(20, 90, n),
            "town": [UNITS[i] for i in town],
            "diagnosis": [illness[t % 3 if alike else i % 3] for i, t in enumerate(town)],
            "e-mail": [f"qq7{i}@example.org" for i in range(n)],
        }
    )


def evidence(
    folder: Path, *, original: bool = True, frame: pd.DataFrame | None = None, k: int = 5, **more: Any
) -> ReleaseEvidence:
    """A release of the ward by Mondrian, written and read again."""
    schema = ward_schema()
    table = Table.from_frame(ward_frame() if frame is None else frame, schema)
    release, form = Mondrian(k=k).anonymize(table, rng=0), FileForm(keep_order=True)
    path = write_release(release, table, folder / "ward.csv", form=form, overwrite=True)
    return ReleaseEvidence.from_file(path, schema, table=table if original else None, **more)


def claim(folder: Path, **values: Any) -> None:
    """Change the claim in the manifest."""
    path = manifest_path(folder / "ward.csv")
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"claim": values}), encoding="utf-8")
