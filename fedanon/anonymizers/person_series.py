"""Series: all rows of a person as one record, so that k people share all that is published of each of them.

Where pseudonyms are published, whoever finds one row of a person has found all. The person is therefore the unit:
people with equally many rows form a table of their own, one wide record per person with the quasi-identifiers of the
first row, the second, and so on, in the order of time. A method anonymizes that table as any other; its groups of
people then publish, row by row, the same cells. Where too few people have as many rows as others, their last rows are
suppressed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from fedanon.data.attributes import is_date
from fedanon.data.cells import Cells, concatenate_cells
from fedanon.data.groups import Groups
from fedanon.data.schema import Attribute, Schema
from fedanon.data.table import Table
from fedanon.types import IndexArray

_SomeAttribute = TypeVar("_SomeAttribute", bound=Attribute)


@dataclass(frozen=True, eq=False)
class Stratum:
    """People of whom equally many rows are published.

    Parameters
    ----------
    rows : the rows of each person in order, one line per person.
    fixed : the quasi-identifiers that are the same on all rows of each person, and stand in the table once.
    wide : the people as a table, one record each.
    """

    rows: IndexArray
    fixed: frozenset[str]
    wide: Table

    def cells_at(self, cells: Mapping[str, Cells], name: str, slot: int) -> Cells:
        """The cells of a column in the row number ``slot`` of each person."""
        return cells[slot_name(name, 0 if name in self.fixed else slot)]


def slot_name(name: str, slot: int) -> str:
    """The name of a column of the row number ``slot`` of a person."""
    return f"{name} [{slot + 1}]"


def split_series(table: Table, k: int) -> list[Stratum]:
    """The people by the number of their rows, at least ``k`` in each part; rows in no part are to be suppressed."""
    assert table.persons is not None
    order = _in_time(table)
    people = table.persons[order]
    starts = np.flatnonzero(np.diff(people, prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    published = level_lengths(lengths, k)
    strata = []
    for length in np.unique(published[published > 0]).tolist():
        of_stratum = starts[published == length]
        rows = order[of_stratum[:, None] + np.arange(length)]
        codes = table.codes[rows]
        same = (codes == codes[:, :1]).all(axis=(0, 1))
        fixed = frozenset(column.name for i, column in enumerate(table.columns) if same[i])
        strata.append(Stratum(rows, fixed, _widened(table, rows, fixed)))
    return strata


def _in_time(table: Table) -> IndexArray:
    """All rows, person by person, by their dates and then by their other quasi-identifiers."""
    assert table.persons is not None
    dated = [i for i, column in enumerate(table.columns) if is_date(column.attribute)]
    others = [i for i in range(len(table.columns)) if i not in dated]
    keys = [table.codes[:, i] for i in (*dated, *others)]
    return np.lexsort((*reversed(keys), table.persons))


def level_lengths(lengths: IndexArray, k: int) -> IndexArray:
    """How many rows of each person are published, so that at least ``k`` people have as many; few rows are lost.

    From the longest series down, people who are too few to stand alone are cut to the next shorter length. Where too
    few are left at the end, either they are not published, or the next longer ones are cut to their length, whichever
    suppresses fewer rows.
    """
    published = lengths.copy()
    kept: list[int] = []
    waiting = np.zeros(len(lengths), dtype=bool)
    for length in np.unique(lengths)[::-1].tolist():
        waiting |= lengths == length
        published[waiting] = length
        if int(waiting.sum()) >= k:
            kept.append(length)
            waiting = np.zeros(len(lengths), dtype=bool)
    if waiting.any():
        least = int(published[waiting].min())
        cut = published == kept[-1] if kept else np.zeros(len(lengths), dtype=bool)
        if kept and int(cut.sum()) * (kept[-1] - least) < int(waiting.sum()) * least:
            published[cut] = least
        else:
            published[waiting] = 0
    return published


def _widened(table: Table, rows: IndexArray, fixed: frozenset[str]) -> Table:
    """One record per person; the columns of the i-th row have its number in their names."""
    slots = range(rows.shape[1])
    placed = [(slot, i) for slot in slots for i, c in enumerate(table.columns) if not slot or c.name not in fixed]
    columns = [replace(table.columns[i], attribute=_named(table.columns[i].attribute, slot)) for slot, i in placed]
    frame = pd.concat([_slot_frame(table, rows[:, slot], slot) for slot in slots], axis=1)
    held = [a for a in table.schema.attributes if a.name in table.frame and a.name != table.schema.pseudonym]
    schema = Schema(
        tuple(_named(a, slot) for slot in slots for a in held if not slot or a.name not in fixed),
        name=table.schema.name,
        one_row_per_person=True,
        missing_values=table.schema.missing_values,
    )
    codes = np.column_stack([table.codes[rows[:, slot], i] for slot, i in placed])
    frame = frame[[a.name for a in schema.attributes]]
    return Table(frame, schema, tuple(columns), np.ascontiguousarray(codes), missing=table.missing)


def _slot_frame(table: Table, rows: IndexArray, slot: int) -> pd.DataFrame:
    frame = table.frame.iloc[rows].reset_index(drop=True)
    return frame.set_axis([slot_name(str(name), slot) for name in frame.columns], axis=1)


def _named(attribute: _SomeAttribute, slot: int) -> _SomeAttribute:
    return replace(attribute, name=slot_name(attribute.name, slot))


def join_series(
    table: Table, strata: Sequence[Stratum], planned: Sequence[tuple[Groups, Mapping[str, Cells]]]
) -> tuple[Groups, dict[str, Cells]]:
    """The groups and cells of all rows, given those of the people of each stratum."""
    labels = np.full(len(table), -1, dtype=np.int32)
    parts: dict[str, list[Cells]] = {column.name: [] for column in table.columns}
    begin = 0
    for stratum, (groups, cells) in zip(strata, planned, strict=True):
        for slot in range(stratum.rows.shape[1]):
            labels[stratum.rows[:, slot]] = np.where(groups.suppressed, -1, begin + groups.labels)
            begin += groups.count
            for name, found in parts.items():
                found.append(stratum.cells_at(cells, name, slot))
    joined = {name: concatenate_cells(found) for name, found in parts.items() if found}
    return Groups(labels, begin), joined
