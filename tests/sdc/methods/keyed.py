"""Small tables of key columns, written out in full."""

from __future__ import annotations

import pandas as pd

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table

QUASI = Role.QUASI_IDENTIFYING
UNITS = Hierarchy.from_nested({"Surgery": ["cardiac", "orthopaedics"], "Medicine": ["oncology", "general"]})


def key_table(missing: str = "error", **columns: list[object]) -> Table:
    """A table whose text columns are categories (``unit`` with a taxonomy of two levels), its numbers 0 to 100.

    A column ``person`` names the people; ``note`` is text that is carried along.
    """
    attributes: list[Attribute] = []
    for name, values in columns.items():
        if name == "person":
            attributes.append(FreeText(name, Role.IDENTIFYING))
        elif name == "note":
            attributes.append(FreeText(name, Role.INSENSITIVE))
        elif name == "unit":
            attributes.append(Categorical(name, QUASI, UNITS))
        elif any(isinstance(value, str) for value in values):
            kinds = sorted({value for value in values if isinstance(value, str)})
            attributes.append(Categorical(name, QUASI, Hierarchy.flat(kinds)))
        else:
            attributes.append(Numeric(name, QUASI, 0.0, 100.0))
    person = "person" if "person" in columns else None
    schema = Schema(tuple(attributes), person_id=person)
    return Table.from_frame(pd.DataFrame(columns), schema, missing=missing)  # type: ignore[arg-type]


def published(table: Table, method: object, seed: int = 0) -> pd.DataFrame:
    """The published cells of a method."""
    return method.anonymize(table, rng=seed).to_frame()  # type: ignore[attr-defined, no-any-return]
