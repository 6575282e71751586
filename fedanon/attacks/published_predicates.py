"""Predicates an attacker reads off released records, and the people of whom they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks.sensitive_pair import values_of
from fedanon.data.cells import Cells, Intervals, Numbers
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import CodedColumn, Table
from fedanon.metrics.published import covers, positions

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Predicate:
    """For one column: of which of its values each released record speaks.

    Parameters
    ----------
    kind : number of the cell each released row publishes; -1 for suppressed rows.
    codes : number of the value of each person, a table each.
    holds : for every such cell and every value of each table, whether the cell is true of it; None where the number of
        the cell is that of the only value it is true of.
    """

    kind: NDArray[np.int32]
    codes: Sequence[NDArray[np.int32]]
    holds: Sequence[BoolArray] | None = None

    def mask(self, row: int, people: int) -> BoolArray:
        """Of whom, in the table number ``people``, it is true what the released ``row`` says."""
        codes = self.codes[people]
        return np.asarray(codes == self.kind[row] if self.holds is None else self.holds[people][self.kind[row]][codes])


def predicates(release: Release, tables: Sequence[Table]) -> list[Predicate]:
    """One predicate a published column: the cell for quasi-identifiers, equality for the others."""
    quasi = [_of_cells(release, tables, i) for i in range(len(tables[0].columns))]
    return quasi + [_of_values(release, tables, str(name)) for name in release.rest.columns]


def _of_cells(release: Release, tables: Sequence[Table], column: int) -> Predicate:
    cells = release.cells[tables[0].columns[column].name]
    equal = Groups.equal_rows(cells.keys())
    kind = np.append(equal.labels, np.int32(-1))[release.groups.labels]
    distinct = cells.take(equal.first_rows)
    codes = [np.ascontiguousarray(table.codes[:, column]) for table in tables]
    return Predicate(kind, codes, [covered(distinct, table.columns[column]) for table in tables])


def _of_values(release: Release, tables: Sequence[Table], name: str) -> Predicate:
    shown, *codes = values_of([release.rest, *(t.frame for t in tables)], release.schema, name)[0]
    return Predicate(np.where(release.suppressed, -1, shown).astype(np.int32), codes)


def covered(cells: Cells, column: CodedColumn) -> BoolArray:
    """Whether each cell (rows) is true of each value of the column (columns).

    Single numbers may be means or noisy: such a cell is taken to speak of the values nearer to it than to any other
    published number.
    """
    if isinstance(cells, Numbers) or (isinstance(cells, Intervals) and _all_points(cells)):
        return _nearest(positions(cells), column)
    cell = np.repeat(np.arange(len(cells)), column.size)
    code = np.tile(np.arange(column.size), len(cells))
    return covers(cells.take(cell), column, code).reshape(len(cells), -1)


def _all_points(cells: Intervals) -> bool:
    return np.array_equal(cells.low, cells.high, equal_nan=True)


def _nearest(published: FloatArray, column: CodedColumn) -> BoolArray:
    assert column.values is not None
    gaps = np.abs(published[:, None] - column.values)
    both = np.isnan(published)[:, None] & np.isnan(column.values)
    least = np.nanmin(np.where(np.isnan(gaps), np.inf, gaps), axis=0)
    return np.asarray((gaps <= least) | both)
