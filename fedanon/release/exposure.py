"""Exposure: what the published columns give away together, whatever is promised of the quasi-identifiers.

Three things are looked at: rows that are like no other in all published columns, classes in which a sensitive column
has one value, and columns carried along that look like an identifier. Columns are looked at one at a time, so that
those of a file larger than memory may pass by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.lint import safe_harbor
from fedanon.data.schema import Numeric, Role, Schema, Unit
from fedanon.data.table import missing_mask, texts
from fedanon.release.view import PublishedView
from fedanon.types import IndexArray


@dataclass(frozen=True)
class Portion:
    """So many of so many.

    Parameters
    ----------
    count : how many are concerned.
    of : how many there are.
    """

    count: int
    of: int

    @property
    def share(self) -> float:
        """The count as a share; 0 of nothing."""
        return self.count / self.of if self.of else 0.0


@dataclass(frozen=True)
class CertainValue:
    """Classes in which all have the same value of a sensitive column.

    Parameters
    ----------
    classes : how many of the classes, and of how many.
    exposed : how many of the published people (or records) are in one of these classes.
    """

    classes: Portion
    exposed: Portion


@dataclass(frozen=True)
class Exposure:
    """What the published columns of a view give away.

    Parameters
    ----------
    unit : what was counted.
    rows : how many rows are published, of all.
    smallest_class : people (or records) in the smallest class.
    unique : published rows whose values in all published columns together no other person (or record) has.
    certain : of every sensitive column, by name.
    suspected : columns carried along that look like an identifier.
    """

    unit: Unit
    rows: Portion
    smallest_class: int
    unique: Portion
    certain: Mapping[str, CertainValue]
    suspected: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The counts, for JSON."""
        return {
            "counted": self.unit,
            "rows": self.rows.of,
            "published_rows": self.rows.count,
            "smallest_class": self.smallest_class,
            "unique_rows": self.unique.count,
            "homogeneous": {
                name: {"classes": one.classes.count, "count": one.exposed.count, "of": one.exposed.of}
                for name, one in self.certain.items()
            },
        }


def measure_exposure(view: PublishedView, columns: Iterable[pd.Series[Any]] | None = None) -> Exposure:
    """Look at every column that is carried along once.

    Parameters
    ----------
    view : what is published.
    columns : the columns carried along, in the order of the view's rows; those the view holds if None.
    """
    passing = (view.passthrough[name] for name in view.passthrough) if columns is None else columns
    refinement = _Refinement(view)
    certain, suspected = dict[str, CertainValue](), list[str]()
    for column in passing:
        attribute = view.schema[str(column.name)]
        if attribute.name == view.schema.pseudonym:
            continue  # known to nobody without the key; that it links rows is part of the classes
        refinement.refine(column)
        if attribute.role is Role.SENSITIVE:
            certain[attribute.name] = certain_value(view, column)
        looks = safe_harbor(Schema((attribute,)), column.to_frame())
        suspected += [attribute.name] if any(look.published for look in looks) else []
    published = Portion(int((~view.suppressed).sum()), len(view))
    unique = Portion(refinement.count_alone(), published.count)
    return Exposure(view.unit, published, view.smallest_class, unique, certain, tuple(suspected))


def certain_value(view: PublishedView, column: pd.Series[Any]) -> CertainValue:
    """Count the classes in which all rows have the same value of a column, and who is in them."""
    alike = view.classes.distinct(_encode(column, view.schema)) == 1
    # a suppressed row, whose label is -1, is in no class
    inside = np.append(alike, False)[view.classes.labels]
    exposed = Portion(_count_units(view, inside), _count_units(view, ~view.suppressed))
    return CertainValue(Portion(int(alike.sum()), view.classes.count), exposed)


def _encode(column: pd.Series[Any], schema: Schema) -> IndexArray:
    """Number the values: missing is one, and numbers are equal however they are written."""
    absent = missing_mask(column, schema)
    values = texts(column).where(~absent)
    if isinstance(schema[str(column.name)], Numeric):
        numbers = pd.to_numeric(values, errors="coerce")
        # a file may hold what its schema excludes, which is then compared as text
        values = numbers if int(numbers.isna().sum()) == int(absent.sum()) else values
    return np.asarray(pd.factorize(values, use_na_sentinel=False)[0], dtype=np.int64)


def _count_units(view: PublishedView, rows: Any) -> int:
    """Number of people who have some of the rows, or of the rows where people are not known."""
    return int(rows.sum()) if view.persons is None else int(np.unique(view.persons[rows]).size)


class _Refinement:
    """Groups of rows that are equal in all columns seen so far; rows that are alone are set aside and not looked at
    again, so that every column costs one pass over what is left."""

    def __init__(self, view: PublishedView) -> None:
        self._rows = np.flatnonzero(~view.suppressed)
        self._groups: IndexArray = view.equal_rows.labels[self._rows].astype(np.int64)
        self._persons = np.arange(len(view)) if view.persons is None else view.persons
        self._alone = 0

    def refine(self, column: pd.Series[Any]) -> None:
        """Part the groups by the values of one more column; a missing value is one of its own."""
        self._set_aside()
        codes, values = pd.factorize(column.iloc[self._rows], use_na_sentinel=False)
        self._groups = pd.factorize(self._groups * len(values) + codes)[0]

    def count_alone(self) -> int:
        """Number of rows that share all their values with no other person, or with no other row."""
        self._set_aside()
        return self._alone

    def _set_aside(self) -> None:
        persons = self._persons[self._rows]
        someone = np.empty(int(self._groups.max(initial=-1)) + 1, dtype=persons.dtype)
        someone[self._groups] = persons
        others = np.bincount(self._groups[persons != someone[self._groups]], minlength=len(someone))
        shared = others[self._groups] > 0
        self._alone += int((~shared).sum())
        self._rows, self._groups = self._rows[shared], self._groups[shared]
