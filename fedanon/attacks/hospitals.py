"""Hospitals that release alone and share patients: what each release leaves possible for those who are in several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.attacks.base import Finding, NotApplicableError
from fedanon.attacks.scene import Scene
from fedanon.attacks.sensitive_pair import sensitive_column
from fedanon.data.groups import Groups
from fedanon.data.schema import Role, Schema
from fedanon.data.table import Table

IndexArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """What the release of one hospital leaves possible.

    Parameters
    ----------
    rows : the rows of the whole table that the hospital has, in order.
    labels : equivalence class of each; -1 where it is suppressed.
    possible : for every class, which values it holds; a row more, the last, for those of whom nothing is published.
    """

    rows: IndexArray
    labels: NDArray[np.int32]
    possible: NDArray[np.bool_]

    def of(self, targets: IndexArray) -> NDArray[np.bool_]:
        """Which values each of ``targets``, rows of the whole table that the hospital has, may have."""
        return self.possible[self.classes_of(targets)]

    def classes_of(self, targets: IndexArray) -> IndexArray:
        """The class of each of ``targets``."""
        return self.labels[np.searchsorted(self.rows, targets)].astype(np.int64)


def release_of_each(scene: Scene, table: Table, column: str, rows_of: Sequence[IndexArray]) -> list[Candidates]:
    """A release by every hospital alone, and what it leaves possible of ``column``."""
    codes = _codes(table, column)
    return [_released(scene, table, codes, rows, f"hospital {i}") for i, rows in enumerate(rows_of)]


def _released(scene: Scene, table: Table, codes: IndexArray, rows: IndexArray, purpose: str) -> Candidates:
    classes = scene.released(table.take(rows), purpose).classes
    possible = np.ones((classes.count + 1, int(codes.max()) + 1), dtype=bool)
    possible[: classes.count] = False
    shown = ~classes.suppressed
    possible[classes.labels[shown], codes[rows][shown]] = True
    return Candidates(rows, classes.labels, possible)


def _codes(table: Table, column: str) -> IndexArray:
    """Numbers of the values, the same in every hospital."""
    codes, values = pd.factorize(table.frame[column].astype("string"), sort=True)
    return np.where(codes < 0, len(values), codes).astype(np.int64)


def judge(together: NDArray[np.bool_], alone: Sequence[NDArray[np.bool_]], clusters: IndexArray) -> Finding:
    """Who is left with one value once all that is possible in each release alone is intersected.

    Baseline: who is already left with one value by the first release. ``clusters`` numbers the classes there.
    """
    unique = together.sum(axis=1) == 1
    before = [possible.sum(axis=1) == 1 for possible in alone]
    details = {
        "unique_in_any_release_alone": float(np.mean(np.any(before, axis=0))),
        "unique_only_together": float(np.mean(unique & ~np.any(before, axis=0))),
        "values_left": float(together.sum(axis=1).mean()),
    }
    baseline = float(np.mean(before[0]))
    # those of whom the first release publishes nothing have the number -1
    return Finding.of_tries(unique.astype(float), baseline, clusters=clusters + 1, details=details)


def prepared(scene: Scene, column: str) -> tuple[Table, str]:
    """The table with ``column`` published as it is, also where it was a quasi-identifier; and its name."""
    if scene.anonymizer is None:
        raise NotApplicableError("It needs the method, to make the releases of several hospitals.")
    table = scene.table
    if column in {c.name for c in table.columns}:
        return table.recoded(_with_sensitive(table.schema, column)), column
    return table, sensitive_column(table.schema, column)


def _with_sensitive(schema: Schema, column: str) -> Schema:
    return schema.replacing(replace(schema[column], role=Role.SENSITIVE))


def people_of(table: Table) -> Groups:
    """The rows of each person."""
    return Groups.of(table.person_of_row)
