"""Small tables and hand-made releases for the tests of the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fedanon.anonymizers.base import publish_smallest_cells
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import MissingPolicy, Table
from fedanon.privacy.base import Claim
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance, Release, release_of

QUASI = Role.QUASI_IDENTIFYING
WARDS = Hierarchy.from_nested({"Surgery": ["ortho", "cardiac"], "Medicine": ["onco", "general"]})
UNEVEN = Hierarchy.from_nested([{"A": [{"B": ["a", "b", "c"]}, "d"]}, {"E": ["e"]}, "f"])


def numeric(name: str, low: float, high: float, hierarchy: Hierarchy | None = None) -> Numeric:
    return Numeric(name, QUASI, low, high, hierarchy=hierarchy)


def table_of(missing: MissingPolicy = "error", /, **columns: tuple[Sequence[object], Numeric | Categorical]) -> Table:
    frame = pd.DataFrame({name: list(values) for name, (values, _) in columns.items()})
    return Table.from_frame(frame, Schema(tuple(attribute for _, attribute in columns.values())), missing=missing)


def released(
    table: Table, labels: Sequence[int], cells: Mapping[str, Cells] | None = None, claim: Claim | None = None
) -> Release:
    """A release of given groups (-1 suppresses) with given cells; the smallest cells where none are given."""
    groups = Groups.from_labels(np.array(labels))
    published = {**publish_smallest_cells(table, groups), **(cells or {})}
    provenance = Provenance("by hand", {}, None, "0", table.sha256, table.schema.sha256)
    return release_of(table, groups, published, claim=claim, provenance=provenance, recoding=NearestGroup())


def wards() -> Table:
    """Six patients; with the groups 0, 0, 0, 1, 1, -1 every metric can be worked out by hand."""
    return table_of(
        age=([20, 24, 30, 40, 40, 50], numeric("age", 20, 60)),
        ward=(["ortho", "cardiac", "ortho", "onco", "onco", "general"], Categorical("ward", QUASI, WARDS)),
    )


WARD_GROUPS = [0, 0, 0, 1, 1, -1]


@st.composite
def tables(draw: st.DrawFn, *, max_rows: int = 30) -> Table:
    """Tables of one to three columns with many ties, and missing values under a policy that allows them."""
    n = draw(st.integers(2, max_rows))
    missing = draw(st.sampled_from(["error", "category", "wildcard"]))
    gap = st.nothing() if missing == "error" else st.none()

    def values(strategy: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(strategy | gap, min_size=n, max_size=n))

    columns: dict[str, tuple[st.SearchStrategy[object], Numeric | Categorical]] = {
        "age": (st.integers(0, 12), numeric("age", 0, 12)),
        "ward": (st.sampled_from(WARDS.labels[:4]), Categorical("ward", QUASI, WARDS)),
        "code": (st.sampled_from(UNEVEN.labels[:6]), Categorical("code", QUASI, UNEVEN)),
        "dose": (st.integers(0, 7).map(lambda x: x / 3), numeric("dose", 0, 3)),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=3, unique=True))
    return table_of(missing, **{name: (values(columns[name][0]), columns[name][1]) for name in chosen})


@st.composite
def releases(draw: st.DrawFn) -> tuple[Table, Release]:
    """A table and a release of arbitrary groups, some rows suppressed."""
    table = draw(tables())
    labels = draw(st.lists(st.integers(-1, 5), min_size=len(table), max_size=len(table)))
    return table, released(table, labels)
