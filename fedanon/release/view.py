"""PublishedView: what an observer sees of a published table, the one thing every number about it is computed from.

A :class:`fedanon.release.release.Release` is a view, and so is a released file that was read back (:class:`FileView`).
Two notions of "the rows published together" exist: ``groups`` are those the method formed; ``classes`` are the
equivalence classes an attacker sees, the rows whose published quasi-identifiers are equal. Privacy is always evaluated
on ``classes``. Where pseudonyms are published, an attacker sees whole series: the people of a class then have equal
series, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from fedanon.data.cells import Cells, parse_cells
from fedanon.data.groups import Groups
from fedanon.data.schema import Schema, Unit
from fedanon.types import BoolArray, IndexArray, IntArray


@dataclass(frozen=True, eq=False)
class PublishedView:
    """A published table.

    Parameters
    ----------
    schema : of the table it was made from.
    passthrough : the columns that are carried along unchanged.
    groups : the groups the method formed; suppressed rows are in none.
    cells : for every quasi-identifier, one cell per group.
    persons : number of the person of each row, or None where rows are counted: each is a person, or who is who is not
        known. It is not published unless as pseudonyms.
    in_group_order : whether rows are published group by group, so that their order says nothing about any record.
    """

    schema: Schema
    passthrough: pd.DataFrame
    groups: Groups
    cells: Mapping[str, Cells]
    persons: IntArray | None = field(default=None, kw_only=True, repr=False)
    in_group_order: bool = field(default=False, kw_only=True)

    def __len__(self) -> int:
        return len(self.passthrough)

    @property
    def suppressed(self) -> BoolArray:
        """Mask of the rows of which nothing is published."""
        return self.groups.suppressed

    @cached_property
    def classes(self) -> Groups:
        """The equivalence classes: rows whose published quasi-identifiers are equal, as are their people's series."""
        if not self.has_pseudonyms:
            return self.equal_rows
        assert self.persons is not None
        return part_by_person(self.equal_rows, self.persons)

    @cached_property
    def equal_rows(self) -> Groups:
        """Rows whose published quasi-identifiers are equal, whatever else is published of their people."""
        names = [a.name for a in self.schema.quasi_identifiers]
        if not names or self.groups.count == 0:
            return Groups.from_labels(np.where(self.suppressed, -1, 0))
        equal = Groups.equal_rows(np.column_stack([self.cells[name].keys() for name in names]))
        labels = np.append(equal.labels, np.int32(-1))[self.groups.labels]
        return Groups.from_labels(labels)

    @property
    def has_pseudonyms(self) -> bool:
        """Whether pseudonyms tell which rows are one person's."""
        return self.schema.pseudonym is not None and self.persons is not None

    @cached_property
    def people(self) -> IndexArray:
        """Number of people in every class, or of records where people are not known."""
        return self.classes.count_people(self.persons)

    @property
    def smallest_class(self) -> int:
        """Number of people (or records) in the smallest class, the k that is reached; 0 if nothing is published."""
        return int(self.people.min()) if self.people.size else 0

    @property
    def knows_people(self) -> bool:
        """Whether what the schema counts can be counted: not people whom ``person_id`` tells apart elsewhere."""
        return self.persons is not None or self.schema.person_id is None

    @property
    def unit(self) -> Unit:
        """What is counted here: people where the schema says who is who and the view knows it too, else records."""
        return self.schema.unit if self.knows_people else "records"

    @property
    def class_cells(self) -> dict[str, Cells]:
        """What is published of every class."""
        of_class = self.groups.labels[self.classes.first_rows]
        return {name: cells.select(of_class) for name, cells in self.cells.items()}

    def groups_of(self, name: str) -> Groups:
        """The rows generalized together in one column."""
        return self.groups


@dataclass(frozen=True, eq=False)
class FileView(PublishedView):
    """A released file as anyone can read it: the texts, and what follows from them.

    Classes are the rows with equal texts; cells are parsed column by column when they are first looked at.

    Parameters
    ----------
    frame : the published columns as text, as many as were read; an empty cell is missing.
    columnwise : whether every column was generalized alone, which the texts do not show.
    """

    frame: pd.DataFrame = field(kw_only=True, repr=False)
    columnwise: bool = field(kw_only=True, default=False)

    @classmethod
    def from_texts(cls, schema: Schema, frame: pd.DataFrame, suppressed: BoolArray) -> FileView:
        """A view of the published columns as text; ``suppressed`` are the rows that publish nothing."""
        names = [a.name for a in schema.quasi_identifiers]
        codes = [pd.factorize(frame[name], sort=True)[0] for name in names]
        equal = Groups.equal_rows(np.column_stack(codes) if codes else np.empty((len(frame), 0)))
        classes = Groups.from_labels(np.where(suppressed, -1, equal.labels))
        cells = ParsedCells(schema, frame[names].iloc[classes.first_rows])
        rest, persons = frame.drop(columns=names), _pseudonymous(frame, schema)
        return cls(schema, rest, classes, cells, persons=persons, frame=frame)

    def in_order(self, rows: IndexArray) -> FileView:
        """The rows in another order: the i-th is ``rows[i]`` of this one."""
        frame = self.frame.iloc[rows].reset_index(drop=True)
        view = replace(FileView.from_texts(self.schema, frame, self.suppressed[rows]), columnwise=self.columnwise)
        return view.read_beside(self.cells.schema) if isinstance(self.cells, ParsedCells) else view

    def read_beside(self, schema: Schema) -> FileView:
        """The same texts, whose cells are read by the taxonomies of ``schema``: those of the original's values."""
        shown = self.frame[list(self.cells)].iloc[self.groups.first_rows]
        return replace(self, cells=ParsedCells(schema, shown))

    @cached_property
    def equal_rows(self) -> Groups:
        """The rows with equal texts."""
        return self.groups


def _pseudonymous(frame: pd.DataFrame, schema: Schema) -> IntArray | None:
    """Number of the person of each row by the pseudonyms of a file; rows without one are nobody else's."""
    if schema.pseudonym is None:
        return None
    codes, people = pd.factorize(frame[schema.pseudonym])
    return np.where(codes < 0, len(people) + np.arange(len(frame)), codes).astype(np.int32)


def part_by_person(classes: Groups, persons: IntArray) -> Groups:
    """Classes parted so that the people of each have the same number of published rows in the same classes.

    Whoever knows all rows of a person, and sees which published rows are one person's, looks for the whole series.
    """
    rows = np.flatnonzero(~classes.suppressed)
    order = rows[np.lexsort((classes.labels[rows], persons[rows]))]
    starts = np.flatnonzero(np.diff(persons[order], prepend=-1))
    series = np.split(classes.labels[order], starts[1:])
    numbers: dict[bytes, int] = {}
    of_person = np.array([numbers.setdefault(labels.tobytes(), len(numbers)) for labels in series], dtype=np.int64)
    labels = np.full(len(persons), -1, dtype=np.int64)
    if len(order):
        pairs = classes.labels[order] * np.int64(len(numbers)) + np.repeat(of_person, [len(one) for one in series])
        labels[order] = pairs
    return Groups.from_labels(labels)


class ParsedCells(Mapping[str, Cells]):
    """The cells of a file, parsed when they are first looked at.

    Parameters
    ----------
    schema : declares the columns.
    texts : of every quasi-identifier, one text per class.
    """

    def __init__(self, schema: Schema, texts: pd.DataFrame) -> None:
        self.schema, self._texts = schema, texts
        self._parsed: dict[str, Cells] = {}

    def __getitem__(self, name: str) -> Cells:
        if name not in self._parsed:
            self._parsed[name] = parse_cells(self._texts[name], self.schema[name])
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts.columns)

    def __len__(self) -> int:
        return self._texts.shape[1]
