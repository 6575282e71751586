"""Key combinations: the distinct rows of some columns as small integers, with the people behind each.

Methods work on the combinations, of which there are few, and not on the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.data.cells import is_suppressed
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.sdc.methods.base import Columns
from fedanon.types import FloatArray, IntArray

#: the code of a suppressed cell
STAR = -1
#: sums of shares of people are compared with k up to this; a sum above k - 1 stands for at least k people
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Keys:
    """The key combinations of a table.

    Parameters
    ----------
    codes : one row a combination, one column a key; STAR is a suppressed cell.
    groups : the combination of every row of the table, in lexicographic order of the published cells.
    people : in every combination, see :func:`person_shares`.
    """

    codes: IntArray
    groups: Groups
    people: FloatArray


def keys_of(table: Table, columns: Columns, names: list[str]) -> Keys:
    """The combinations of the columns ``names``, as they are now."""
    attributes = {column.name: column.attribute for column in table.columns}
    codes = np.empty((len(table), len(names)), dtype=np.int32)
    for i, name in enumerate(names):
        values = Groups.equal_rows(columns[name].keys()).labels
        codes[:, i] = np.where(is_suppressed(columns[name], attributes[name]), STAR, values)
    groups = Groups.equal_rows(codes)
    return Keys(codes[groups.first_rows], groups, sums(groups.labels, person_shares(table)))


def sums(labels: IntArray, weights: FloatArray) -> FloatArray:
    """Sum of the weights of the rows of every label."""
    return np.asarray(np.bincount(labels, weights), dtype=np.float64)


def person_shares(table: Table) -> FloatArray:
    """One for every row, or one divided among the rows of a person.

    The sum over some rows is never more than the number of people they belong to, so a sum of k is k people.
    """
    if table.persons is None:
        return np.ones(len(table))
    return np.asarray(1.0 / np.bincount(table.persons)[table.persons])
