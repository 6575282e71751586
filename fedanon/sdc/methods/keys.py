"""What the methods for key columns share: notes about a release, and key combinations with the people behind each.

Key combinations are the distinct rows of some columns as small integers. Methods work on the combinations, of which
there are few, rather than on the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedanon.anonymizers.base import ReleasePlan
from fedanon.data.cells import is_suppressed
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.sdc.methods.base import NO_CLAIM, Columns, Perturbative, own_columns, plan_of
from fedanon.sdc.metrics.categories import says_nothing
from fedanon.sdc.variables import Part
from fedanon.sdc.wildcards import SUPPRESSED
from fedanon.types import FloatArray, IntArray, Rng

#: sums of shares of people are compared with k up to this; a sum above k - 1 stands for at least k people
ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class KeyMethod(Perturbative):
    """Base of the methods for key columns; they add :meth:`remarks` to the notes of a release."""

    takes: ClassVar[Part] = "keys"

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """What a reader of the release has to know about this step; no cell is quoted."""
        return ()

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Change the table's own cells once, with remarks."""
        before = own_columns(table)
        after = {**before, **self.change(table, before, rng)}
        says_enough = self.truthful or self.claim() is not None
        notes = (*self.remarks(table, before, after), *(() if says_enough else (NO_CLAIM,)))
        return replace(plan_of(table, after, ()), notes=notes)


@dataclass(frozen=True, eq=False)
class Keys:
    """The key combinations of a table.

    Parameters
    ----------
    codes : one row per combination, one column per key; SUPPRESSED stands for a cell that says nothing.
    groups : the combination of every row of the table, in lexicographic order of the published cells.
    people : the people behind every combination, see :func:`person_shares`.
    """

    codes: IntArray
    groups: Groups
    people: FloatArray


def keys_of(table: Table, columns: Columns, names: list[str], *, missing_agrees: bool = False) -> Keys:
    """Return the current combinations of the columns ``names``.

    A missing key is a value, which only missing ones equal; or, with ``missing_agrees``, as silent as '*'.
    """
    silent = says_nothing if missing_agrees else is_suppressed
    attributes = {column.name: column.attribute for column in table.columns}
    codes = np.empty((len(table), len(names)), dtype=np.int32)
    for i, name in enumerate(names):
        values = Groups.equal_rows(columns[name].keys()).labels
        codes[:, i] = np.where(silent(columns[name], attributes[name]), SUPPRESSED, values)
    groups = Groups.equal_rows(codes)
    return Keys(codes[groups.first_rows], groups, sums(groups.labels, person_shares(table)))


def sums(labels: IntArray, weights: FloatArray) -> FloatArray:
    """Sum the weights of the rows of every label."""
    return np.asarray(np.bincount(labels, weights), dtype=np.float64)


def person_shares(table: Table) -> FloatArray:
    """Return 1 for every row, or 1 divided among the rows of the same person.

    The sum over some rows never exceeds the number of people they belong to, so a sum of k means k people.
    """
    if table.persons is None:
        return np.ones(len(table))
    return np.asarray(1.0 / np.bincount(table.persons)[table.persons])
