"""Keys, numbers and categories to randomize: the three lists of columns that disclosure control keeps apart.

*Keys* are what an attacker may know; they are recoded and suppressed, and re-identification is measured by them alone.
*Numbers* are masked by noise, swapping or microaggregation, and judged by how near the result is to the original.
*Categories* are drawn anew by PRAM. R's sdcMicro calls them keyVars, numVars and pramVars. A number that was masked is
unique in nearly every record; if it counted as a key, every record would have to be suppressed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from fedanon.data.cells import Cells, Nodes
from fedanon.data.schema import Attribute, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.release.release import Release
from fedanon.types import AnyArray, IntArray

Part = Literal["keys", "numbers", "categories"]


@dataclass(frozen=True)
class Variables:
    """Names of the columns of every list.

    As an argument, an empty list stands for the default: the keys are the schema's quasi-identifiers that are in no
    other list, and numbers and categories are what the steps of a chain name.
    """

    keys: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.keys, *self.numbers, *self.categories)

    def refuse_shared(self) -> None:
        """Raise ConfigError if a column is in two lists."""
        shared = sorted({name for name in self.named if self.named.count(name) > 1})
        if shared:
            raise ConfigError(
                f"A column is a key, a number or a category to randomize, each named once. Not so: {', '.join(shared)}."
            )

    def keys_of(self, schema: Schema) -> list[str]:
        """Return the keys of a table with this schema."""
        other = (*self.numbers, *self.categories)
        return list(self.keys) or [a.name for a in schema.quasi_identifiers if a.name not in other]

    def to_dict(self) -> dict[str, list[str]]:
        """For the manifest."""
        return {part: list(names) for part, names in asdict(self).items()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Sequence[str]]) -> Variables:
        """The inverse of :meth:`to_dict`."""
        return cls(**{part: tuple(names) for part, names in document.items()})


def part_of_table(table: Table, names: Sequence[str]) -> Table:
    """Return the same rows with only ``names``, which must be quasi-identifiers, as such."""
    kept = [i for i, column in enumerate(table.columns) if column.name in names]
    return replace(
        table,
        schema=table.schema.with_quasi_identifiers([table.columns[i].name for i in kept]),
        columns=tuple(table.columns[i] for i in kept),
        codes=np.ascontiguousarray(table.codes[:, kept]),
    )


def part_of_release(release: Release, names: Sequence[str], schema: Schema) -> Release:
    """Return what is published with only ``names`` as quasi-identifiers; the others have their role in ``schema``.

    Its classes are the rows that agree in ``names``, and a sensitive column that was masked is sensitive again, with
    the values that are published.
    """
    cells = {name: column for name, column in release.cells.items() if name in names}
    others = {name: column for name, column in release.cells.items() if name not in names}
    part = release.schema.with_quasi_identifiers(list(cells))
    shown = {name: _values(column, release.groups.labels) for name, column in others.items()}
    declared = [_beside(part[name], schema[name].role, shown[name]) for name in others]
    frame = release.passthrough
    return replace(
        release,
        schema=part.replacing(*declared),
        passthrough=pd.concat([frame, pd.DataFrame(shown, index=frame.index)], axis=1) if shown else frame,
        cells=cells,
    )


def _beside(attribute: Attribute, role: Role, values: AnyArray) -> Attribute:
    """Return the declaration of a column that is no key here; noise may have left its range."""
    role = Role.INSENSITIVE if role is Role.QUASI_IDENTIFYING else role
    if not isinstance(attribute, Numeric) or values.dtype == object:
        return replace(attribute, role=role)
    low, high = np.nanmin(values, initial=attribute.low), np.nanmax(values, initial=attribute.high)
    return replace(attribute, role=role, low=float(low), high=float(high), integer=False, hierarchy=None)


def _values(cells: Cells, labels: IntArray) -> AnyArray:
    """Return what a column publishes of every row, as text or numbers; empty where the row is suppressed."""
    if isinstance(cells, Nodes):
        return np.array([*cells.texts(), None], dtype=object)[labels]
    return np.append(cells.midpoints(), np.nan)[labels]


def variables_of(release: Release) -> Variables | None:
    """Return the lists a chain of steps was run with; None for the release of a single method."""
    found = release.provenance.parameters.get("variables")
    return Variables.from_dict(found["used"]) if isinstance(found, Mapping) else None
