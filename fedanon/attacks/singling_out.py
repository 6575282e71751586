"""Singling out: a statement read off the release that is true of exactly one person.

Knows: a release of some of the people. Does: takes a random released record and states what it publishes in some
columns. Judged by: the share of statements that are true of exactly one person in the release, against the same
statements on people outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, require_members
from fedanon.attacks.context import AttackContext
from fedanon.attacks.sensitive_values import values_of
from fedanon.data.cells import Cells, Intervals, Numbers
from fedanon.data.groups import Groups
from fedanon.data.table import CodedColumn, Table
from fedanon.fields import parameter
from fedanon.metrics.published import covers, positions
from fedanon.release.release import Release
from fedanon.types import BoolArray, FloatArray, IndexArray


@ATTACKS.register("singling_out")
@dataclass(frozen=True, kw_only=True)
class SinglingOut(Attack):
    r"""Share of the statements, read off released records, that are true of exactly one original.

    .. math:: \frac1n \sum_q \big[ |\{ x \in X : q(x) \}| = 1 \big]

    A statement q takes a random released record and says what it publishes in ``columns`` columns drawn at random:
    "age in [30, 34], graduate degree, hours-per-week is 45" (multivariate predicates of Giomi et al. 2023; Cohen &
    Nissim 2020). Columns that are not quasi-identifiers are published as they are and count too. Each statement is made
    once. Baseline: the share of the same statements that are true of exactly one among about as many people who are not
    in the release. A detail reports how many single out by their quasi-identifiers alone, all that k-anonymity covers.
    """

    title = "Singling out"
    meaning = "What the release says is true of exactly one person, who can be told apart although not yet named."
    target = "release"

    statements: int = parameter(2000, help="number of statements", at_least=1)
    columns: int = parameter(0, help="columns of a statement; 0 takes all", at_least=0)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Make statements and count the people they are true of."""
        members = require_members(context)
        columns = read_predicates(members.release, [members.table, members.control])
        rows = np.flatnonzero(~members.release.suppressed)
        width = min(self.columns or len(columns), len(columns))
        drawn = [_draw_statement(columns, rows, width, rng) for _ in range(self.statements)]
        # the same statement in other words is not a second try
        made = list({_meaning(columns, *statement): statement for statement in drawn}.values())
        quasi = len(members.table.columns)
        counts = np.array([[_count_true(columns, *one, quasi, people) for people in (0, 1)] for one in made])
        inside, outside = (counts == 1).astype(np.float64).transpose(1, 2, 0)
        details = {"columns": float(width), "rate_by_quasi_identifiers_alone": float(inside[0].mean())}
        return Finding.from_tries(inside[1], float(outside[1].mean()), details=details)


Statement = tuple[int, NDArray[np.int64]]


def _draw_statement(
    columns: list[Predicate], rows: NDArray[np.int64], width: int, rng: np.random.Generator
) -> Statement:
    """Draw a released row and the columns to state."""
    return int(rng.choice(rows)), np.sort(rng.permutation(len(columns))[:width])


def _meaning(columns: list[Predicate], row: int, chosen: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    return tuple((int(c), int(columns[c].kind[row])) for c in chosen)


def _count_true(columns: list[Predicate], row: int, chosen: NDArray[np.int64], quasi: int, people: int) -> list[int]:
    """Count the people for whom the statement holds in the first ``quasi`` columns, and in all of them."""
    left = np.arange(len(columns[0].codes[people]))
    of_quasi = len(left)
    for c in chosen:  # quasi-identifiers first; few people are left soon
        left = left[columns[c].mask(row, people, slice(None) if len(left) == len(columns[c].codes[people]) else left)]
        if c < quasi:
            of_quasi = len(left)
    return [of_quasi, len(left)]


@dataclass(frozen=True, eq=False)
class Predicate:
    """For one column: which of its values each released record is true of.

    Parameters
    ----------
    kind : number of the cell each released row publishes; -1 for suppressed rows.
    codes : per table, the number of each person's value.
    holds : per table, whether each cell is true of each value; None where the number of the cell is that of the only
        value it is true of.
    """

    kind: NDArray[np.int32]
    codes: Sequence[NDArray[np.int32]]
    holds: Sequence[BoolArray] | None = None

    def mask(self, row: int, people: int, at: IndexArray | slice = slice(None)) -> BoolArray:
        """Return for whom in table number ``people``, or at some places of it, the cell of a released row is true."""
        codes = self.codes[people][at]
        return np.asarray(codes == self.kind[row] if self.holds is None else self.holds[people][self.kind[row]][codes])


def read_predicates(release: Release, tables: Sequence[Table]) -> list[Predicate]:
    """Read one predicate per published column: the cell for quasi-identifiers, equality for the others."""
    quasi = [_cell_predicate(release, tables, i) for i in range(len(tables[0].columns))]
    return quasi + [_value_predicate(release, tables, str(name)) for name in release.passthrough.columns]


def _cell_predicate(release: Release, tables: Sequence[Table], column: int) -> Predicate:
    cells = release.cells[tables[0].columns[column].name]
    equal = Groups.equal_rows(cells.keys())
    kind = np.append(equal.labels, np.int32(-1))[release.groups.labels]
    distinct = cells.select(equal.first_rows)
    codes = [np.ascontiguousarray(table.codes[:, column]) for table in tables]
    return Predicate(kind, codes, [_coverage(distinct, table.columns[column]) for table in tables])


def _value_predicate(release: Release, tables: Sequence[Table], name: str) -> Predicate:
    shown, *codes = values_of([release.passthrough, *(t.frame for t in tables)], release.schema, name)[0]
    return Predicate(np.where(release.suppressed, -1, shown).astype(np.int32), codes)


def _coverage(cells: Cells, column: CodedColumn) -> BoolArray:
    """Compute whether each cell (rows) is true of each value of the column (columns).

    Single numbers may be means or noisy: such a cell is taken to be true of the values nearer to it than to any other
    published number.
    """
    if isinstance(cells, Numbers) or (isinstance(cells, Intervals) and _all_points(cells)):
        return _nearest(positions(cells), column)
    cell = np.repeat(np.arange(len(cells)), column.size)
    code = np.tile(np.arange(column.size), len(cells))
    return covers(cells.select(cell), column, code).reshape(len(cells), -1)


def _all_points(cells: Intervals) -> bool:
    return np.array_equal(cells.low, cells.high, equal_nan=True)


def _nearest(published: FloatArray, column: CodedColumn) -> BoolArray:
    assert column.values is not None
    gaps = np.abs(published[:, None] - column.values)
    both = np.isnan(published)[:, None] & np.isnan(column.values)
    least = np.nanmin(np.where(np.isnan(gaps), np.inf, gaps), axis=0)
    return np.asarray((gaps <= least) | both)
