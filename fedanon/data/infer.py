"""A first schema for a table nobody has described yet: roles by column name, types and ranges by the data.

It is only a proposal. What a column means, and who may know it, is for a person to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from fedanon.data.builders import date_hierarchy, prefix_hierarchy
from fedanon.data.column_names import IDENTIFYING, PERSON, POSTAL, QUASI_IDENTIFYING, SENSITIVE, suggests
from fedanon.data.hierarchy import ROOT, Hierarchy
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import texts
from fedanon.errors import ConfigError, DataError, SchemaError

MISSING_TOKENS = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL")
MAX_CATEGORIES = 50
NEARLY_UNIQUE = 0.9
ENOUGH_ROWS = 20

PROPOSAL = """\
A proposal, made from the names and the values of the columns. Before it is used, a person who knows the data has to
check every role, widen the ranges to what may occur, and put a taxonomy in place of long lists of values."""


def infer_schema(frame: pd.DataFrame, *, name: str) -> Schema:
    """Propose a schema for ``frame``.

    Parameters
    ----------
    frame : the data, best as :func:`fedanon.data.csv_file.read_frame` gives them.
    name : of the schema.
    """
    _refuse_empty(frame)
    columns = {str(column): texts(frame[column]) for column in frame}
    tokens = tuple(token for token in MISSING_TOKENS if any((column == token).any() for column in columns.values()))
    known = {column: cells[~cells.isin(tokens)].dropna() for column, cells in columns.items()}
    attributes = tuple(_attribute(column, cells) for column, cells in known.items())
    persons = (a.name for a in attributes if _names_person(a, known[a.name], len(frame)))
    return Schema(attributes, name=name, person_id=next(persons, None), missing_values=tokens)


def numeric_schema(frame: pd.DataFrame, qi: Literal["all"] | Sequence[str], *, name: str = "table") -> Schema:
    """A schema for a table of numbers: the columns ``qi`` are quasi-identifying, with the data's range.

    Parameters
    ----------
    frame : the data.
    qi : names of the quasi-identifiers, or 'all'.
    name : of the schema.
    """
    _refuse_empty(frame)
    names = [str(column) for column in frame]
    chosen = names if isinstance(qi, str) else list(qi)
    absent = [column for column in chosen if column not in names]
    if absent:
        raise ConfigError(f"The data have no column named: {', '.join(absent)}.")
    known = {str(column): texts(frame[column]).dropna() for column in frame}
    attributes = []
    for column in names:
        numeric = _numeric(column, Role.QUASI_IDENTIFYING if column in chosen else Role.INSENSITIVE, known[column])
        if numeric is None and column in chosen:
            raise SchemaError(f"The column {column!r} is not numeric; a schema file is needed to use it.")
        attributes.append(numeric or FreeText(column, Role.INSENSITIVE))
    return Schema(tuple(attributes), name=name)


# ---- one column ---------------------------------------------------------------------------------


def _attribute(name: str, cells: pd.Series[Any]) -> Attribute:
    """``cells`` are the values that are not missing, as text."""
    if suggests(name, IDENTIFYING) or cells.empty:
        return FreeText(name, Role.IDENTIFYING if len(cells) else Role.INSENSITIVE)
    role = _role(name)
    if suggests(name, POSTAL):
        return Categorical(name, role, _taxonomy(name, cells))
    numeric = _numeric(name, role, cells)
    distinct = cells.nunique()
    if role is Role.INSENSITIVE and _looks_like_key(cells, distinct, numeric):
        return FreeText(name, Role.IDENTIFYING)
    if numeric is not None:
        return numeric
    if distinct <= MAX_CATEGORIES or role is Role.QUASI_IDENTIFYING:
        return Categorical(name, role, _taxonomy(name, cells))
    return FreeText(name, role)


def _role(name: str) -> Role:
    if suggests(name, QUASI_IDENTIFYING):
        return Role.QUASI_IDENTIFYING
    return Role.SENSITIVE if suggests(name, SENSITIVE) else Role.INSENSITIVE


def _looks_like_key(cells: pd.Series[Any], distinct: int, numeric: Numeric | None) -> bool:
    """Nearly unique text, or whole numbers that never repeat."""
    if len(cells) < ENOUGH_ROWS:
        return False
    if numeric is None:
        return distinct >= NEARLY_UNIQUE * len(cells)
    return numeric.integer and distinct == len(cells)


def _numeric(name: str, role: Role, cells: pd.Series[Any]) -> Numeric | None:
    """The column as numbers with the range of the data, unless a cell is none; '007' is a code."""
    if cells.empty or cells.str.match(r"[+-]?0\d").any():
        return None
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(values).all():
        return None
    return Numeric(name, role, float(values.min()), float(values.max()), bool((values == np.floor(values)).all()))


def _taxonomy(name: str, cells: pd.Series[Any]) -> Hierarchy:
    """By calendar or prefix where the values allow it, else flat."""
    values = sorted({str(cell) for cell in cells})
    if len(values) > MAX_CATEGORIES or suggests(name, POSTAL):
        for build in (date_hierarchy, prefix_hierarchy) if suggests(name, POSTAL) else (date_hierarchy,):
            try:
                return build(values)
            except SchemaError:
                continue
    return Hierarchy.flat(values, root=ROOT if ROOT not in values else "(any)")


def _names_person(attribute: Attribute, cells: pd.Series[Any], rows: int) -> bool:
    """Whether an identifier repeats over rows, so that it tells which rows are one person's."""
    named = attribute.role is Role.IDENTIFYING and suggests(attribute.name, PERSON)
    return named and len(cells) == rows and cells.nunique() < rows


def _refuse_empty(frame: pd.DataFrame) -> None:
    if frame.empty:
        raise DataError("The table has no rows; there is nothing to make a schema from.")
