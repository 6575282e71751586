"""Hospitals that share some patients release alone or jointly: what all their releases give away at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.federated.sources import data_of, partition_rows, whole_table
from fedanon.fields import parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, MethodTask
from fedanon.release.release import Release
from fedanon.types import IndexArray


@TASKS.register("hospitals")
@dataclass(frozen=True, kw_only=True)
class HospitalsTask(MethodTask):
    """Homogeneity and composition over the releases of a federation, without training.

    The rows are dealt out at random, or lie where a column says; the share ``second`` of them is also at another
    hospital. ``homogeneity`` is the
    share of the published rows whose class has a single sensitive value among the rows of all hospitals that publish
    the same cells; ``homogeneity_hospital`` among those of their own hospital, for an attacker who knows it.
    ``composition`` is the share of the people at two hospitals for whom both classes leave a single value,
    ``composition_alone`` the first class alone (Ganta, Kasiviswanathan & Smith 2008).
    """

    takes_joint: ClassVar[bool] = True

    nodes: int = parameter(10, help="number of hospitals", at_least=2, aliases=("clients",))
    partition: str = parameter("iid", help="iid, or by:COLUMN: the hospitals that the table names", optional=True)
    column: str = parameter("", help="sensitive column; the schema's first by default", optional=True)
    second: float = parameter(0.05, help="share of the rows that are at a second hospital", at_least=0, at_most=1)

    def run(self) -> CellResult:
        """Deal out the rows, release, and attack."""
        table = whole_table(data_of(self))
        codes = pd.factorize(table.frame[self.column or table.schema.sensitive[0]].astype("string"))[0]
        home, other = self._attended(len(table))
        rows_of = [np.flatnonzero((home == h) | (other == h)) for h in range(home.max() + 1)]
        releases = self.releases([table.select_rows(rows) for rows in rows_of])
        seen = [Seen.from_release(rows, codes[rows], release) for rows, release in zip(rows_of, releases, strict=True)]
        shared = np.flatnonzero(other >= 0)
        return CellResult({**_homogeneity(seen), **_composition(seen, home[shared], other[shared], shared)})

    def _attended(self, n_rows: int) -> tuple[IndexArray, IndexArray]:
        """The hospital of every row, and its second one or -1."""
        rng = np.random.default_rng([self.seed, *b"hospitals"])
        home, nodes = rng.permutation(n_rows) % self.nodes, self.nodes
        if self.partition != "iid":
            parts = partition_rows(data_of(self), self.partition, self.nodes, self.seed)
            nodes = len(parts)
            for number, rows in enumerate(parts):
                home[rows] = number
        other = (home + 1 + rng.integers(nodes - 1, size=n_rows)) % nodes
        return home, np.where(rng.random(n_rows) < self.second, other, -1)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a release shows: for every row the code of its value, its cells and its class, -1 if suppressed."""

    rows: IndexArray
    values: IndexArray
    cells: NDArray[np.object_]
    classes: IndexArray

    @classmethod
    def from_release(cls, rows: IndexArray, values: IndexArray, release: Release) -> Seen:
        """From the release of some rows."""
        from fedanon.privacy.federation_count import cell_keys

        labels = release.groups.labels.astype(np.int64)
        keys = np.array([*cell_keys({a.name: release.cells[a.name] for a in release.schema.quasi_identifiers}), ""])
        return cls(rows, values, keys[np.where(labels < 0, len(keys) - 1, labels)], labels)

    def possible(self, row: int) -> set[int]:
        """Values in the class of a row; all values if it is suppressed."""
        label = self.classes[np.searchsorted(self.rows, row)]
        return set(self.values[self.classes == label].tolist()) if label >= 0 else set(self.values.tolist())


def _homogeneity(seen: Sequence[Seen]) -> dict[str, float]:
    frame = pd.concat(
        pd.DataFrame({"hospital": i, "cells": s.cells, "value": s.values})[s.classes >= 0] for i, s in enumerate(seen)
    )
    everywhere = frame.groupby("cells")["value"].transform("nunique") == 1
    here = frame.groupby(["hospital", "cells"])["value"].transform("nunique") == 1
    return {"homogeneity": float(everywhere.mean()), "homogeneity_hospital": float(here.mean())}


def _composition(seen: Sequence[Seen], home: IndexArray, other: IndexArray, shared: IndexArray) -> dict[str, float]:
    pairs = [(seen[a].possible(row), seen[b].possible(row)) for a, b, row in zip(home, other, shared, strict=True)]
    if not pairs:
        return {}
    left = [len(first & second) == 1 for first, second in pairs]
    return {
        "composition": float(np.mean(left)),
        "composition_alone": float(np.mean([len(first) == 1 for first, _ in pairs])),
    }
