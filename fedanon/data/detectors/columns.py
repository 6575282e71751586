"""What a column is, by its name and its values together, and why: a role to propose, or none.

Fails closed. What identifies comes first; what neither name nor values explain is undecided, and nothing is published
while a column is. Reasons name words of the column's name and counts, never a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from fedanon.data.detectors.headers import KINDS, Header, Kind, Whose, read_header
from fedanon.data.detectors.shapes import (
    Shape,
    are_names,
    are_numbers,
    are_sentences,
    are_whole_numbers,
    shape_of,
)
from fedanon.data.groups import Groups
from fedanon.data.schema import Role
from fedanon.types import IndexArray

NEARLY_UNIQUE = 0.9
ENOUGH_ROWS = 20
#: values that tell too few people apart to be numbers of people
FEW = 2
#: a code with as many values, and as large a share of the rows, numbers something
MANY, SHARE = 10, 0.05

#: how a column gave itself away
Sign = Literal["name", "shape", "unique", "repeats"]


@dataclass(frozen=True)
class Judgment:
    """What a column is taken for.

    Parameters
    ----------
    role : to propose.
    reason : a clause about the column, without any of its values.
    sign : what was decisive; None if nothing was.
    kind : of identifiers, by HIPAA Safe Harbor's list, if it is one.
    whose : what its numbers are numbers of, if it holds numbers of something.
    """

    role: Role
    reason: str
    sign: Sign | None = None
    kind: Kind | None = None
    whose: Whose | None = None


@dataclass(frozen=True)
class _Column:
    header: Header
    cells: pd.Series[str]
    rows: int
    distinct: int
    shape: Shape | None

    @property
    def counted(self) -> str:
        return f"{self.distinct:,} values on {len(self.cells):,} rows"

    @property
    def is_few(self) -> bool:
        """Too few values to number people or records, unless the table is tiny."""
        return len(self.cells) >= ENOUGH_ROWS and (
            self.distinct <= FEW or (self.distinct <= MANY and self.distinct < SHARE * len(self.cells))
        )

    @property
    def is_many(self) -> bool:
        return self.distinct >= max(MANY, SHARE * len(self.cells))

    @property
    def is_nearly_unique(self) -> bool:
        return len(self.cells) >= ENOUGH_ROWS and self.distinct >= NEARLY_UNIQUE * len(self.cells)


def judge_column(name: str, cells: pd.Series[str], *, rows: int) -> Judgment:
    """Return what a column is taken for.

    Parameters
    ----------
    name : of the column.
    cells : its values that are not missing, as text.
    rows : of the table.
    """
    header = read_header(name)
    column = _Column(header, cells, rows, int(cells.nunique()), shape_of(cells))
    tests = (_by_shape, _by_number, _by_identifying_word, _by_text, _by_date, _by_word, _by_uniqueness)
    for test in tests:
        found = test(column)
        if found is not None:
            return found
    if cells.empty:
        return Judgment(Role.UNDECIDED, "it has no values, and its name is not known")
    return Judgment(Role.UNDECIDED, f"neither its name nor its values are known ({column.counted})")


# ---- identifiers -------------------------------------------------------------------------------


def _by_shape(column: _Column) -> Judgment | None:
    shape = column.shape
    if shape is None or shape.role is not Role.IDENTIFYING:
        return None
    whose = column.header.whose
    return Judgment(Role.IDENTIFYING, f"most of its values look like {shape.title}", "shape", shape.kind, whose)


def _by_number(column: _Column) -> Judgment | None:
    """Numbers of people, households, stays; by name."""
    whose = column.header.whose
    if _is_dated(column):
        return None
    if whose is None:
        return _by_unique_id(column)
    if column.is_few:
        if whose != "person":
            return None
        reason = f"its name is that of a person's number, but it has only {column.counted}"
        return Judgment(Role.UNDECIDED, reason, "name", KINDS[-1], whose)
    topic = column.header.topic(Role.IDENTIFYING)
    kind = KINDS[-1] if topic is None else topic[0].kind
    if whose == "person":
        return Judgment(
            Role.IDENTIFYING, f"its name is that of a person's number ({column.counted})", "name", kind, whose
        )
    numbers = are_whole_numbers(column.cells) or not are_numbers(column.cells)
    if whose == "anything":
        return Judgment(Role.IDENTIFYING, f"its name is that of an identifier ({column.counted})", "name", kind, whose)
    if numbers and column.is_many:
        what = {"household": "household's", "record": "record's", "perhaps_person": "case's"}[whose]
        return Judgment(
            Role.IDENTIFYING, f"its name is that of a {what} number ({column.counted})", "name", kind, whose
        )
    return None


def _by_unique_id(column: _Column) -> Judgment | None:
    """Numbers of whatever else, one for each row: 'diagnosisid'."""
    if column.header.is_id and column.is_nearly_unique:
        reason = f"its name is that of an identifier, and nearly every row has its own value ({column.counted})"
        return Judgment(Role.IDENTIFYING, reason, "name", KINDS[-1], "record")
    return None


def _is_dated(column: _Column) -> bool:
    return column.shape is not None and column.shape.role is not Role.IDENTIFYING


def _by_identifying_word(column: _Column) -> Judgment | None:
    found = column.header.topic(Role.IDENTIFYING)
    if found is None or (_is_dated(column) and found[0].name != "addresses"):
        return None
    topic, word = found
    if topic.name == "numbers" and len(column.header.topics) > 1 and not column.is_many:
        return None  # the code of a category
    if topic.name == "free_text" and (column.is_few or are_numbers(column.cells)):
        return None
    if column.is_few:
        reason = f"the word '{word}' in its name stands for {topic.title}, but it has only {column.counted}"
        return Judgment(Role.UNDECIDED, reason, "name", topic.kind)
    return Judgment(Role.IDENTIFYING, f"the word '{word}' in its name stands for {topic.title}", "name", topic.kind)


def _by_text(column: _Column) -> Judgment | None:
    if column.cells.empty or are_numbers(column.cells):
        return None
    if are_sentences(column.cells):
        return Judgment(Role.IDENTIFYING, "it holds free text, which may name people", "shape", KINDS[-1])
    named = column.header.topic(Role.QUASI_IDENTIFYING, Role.SENSITIVE)
    if named is None and are_names(column.cells):
        return Judgment(Role.IDENTIFYING, "its values look like names of people", "shape", KINDS[0])
    return None


# ---- other roles ---------------------------------------------------------------------------------


def _by_date(column: _Column) -> Judgment | None:
    shape = column.shape
    if shape is None:
        return None
    return Judgment(Role.QUASI_IDENTIFYING, f"most of its values look like {shape.title}", "shape", shape.kind)


def _by_word(column: _Column) -> Judgment | None:
    known, harmful = column.header.topic(Role.QUASI_IDENTIFYING), column.header.topic(Role.SENSITIVE)
    if known is not None and not (known[0].is_weak and harmful is not None):
        topic, word = known
        reason = f"others may know it: the word '{word}' in its name stands for {topic.title}"
        return Judgment(Role.QUASI_IDENTIFYING, reason, "name", topic.kind)
    found = harmful or column.header.topic(Role.INSENSITIVE)
    if found is None:
        return None
    topic, word = found
    about = f"the word '{word}' in its name stands for {topic.title}"
    if column.is_nearly_unique and not are_numbers(column.cells):
        reason = f"{about}, but nearly every row has its own text ({column.counted})"
        return Judgment(Role.UNDECIDED, reason, "unique", KINDS[-1])
    return Judgment(topic.role, about, "name")


def _by_uniqueness(column: _Column) -> Judgment | None:
    if column.distinct == 1 and len(column.cells) == column.rows > 1:
        return Judgment(Role.INSENSITIVE, "it has the same value on all rows")
    if not column.is_nearly_unique:
        return None
    if not are_numbers(column.cells) or (are_whole_numbers(column.cells) and column.distinct == len(column.cells)):
        reason = f"nearly every row has its own value ({column.counted}), as a record number has"
        return Judgment(Role.IDENTIFYING, reason, "unique", KINDS[-1])
    return None


# ---- which rows belong together ------------------------------------------------------------------


def agreement(groups: IndexArray, values: IndexArray) -> float:
    """Share of the rows whose value is the most frequent one of their group."""
    pairs = Groups.equal_rows(np.column_stack([groups, values]))
    largest = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, groups[pairs.first_rows], pairs.sizes)
    return float(largest.sum() / len(groups))


def same_within(groups: IndexArray, others: Mapping[str, IndexArray]) -> dict[str, bool]:
    """Return for each column whether rows of one group share its value far more often than chance would have it.

    Columns with one value, and rows alone in their group, say nothing and are left out.
    """
    sizes = np.bincount(groups)
    shared = sizes[groups] > 1
    if not shared.any():
        return {}
    found = {}
    for name, values in others.items():
        guessed = agreement(np.zeros_like(groups[shared]), values[shared])
        if guessed < 1:
            found[name] = 1 - agreement(groups[shared], values[shared]) <= (1 - guessed) / 10
    return found
