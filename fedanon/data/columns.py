"""Columns: the cells of one column as codes, checked against what the schema declares of it.

Code order carries the geometry: numeric codes follow the values, categorical codes follow the leaves of the taxonomy in
depth-first order. A missing value, where the policy allows one, is always the last code. Where a column has a rule,
this is where the rule meets the data: each distinct cell is read once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.attributes import is_date
from fedanon.data.cells import cell_texts
from fedanon.data.coded_column import CodedColumn
from fedanon.data.rules import BandRule, CodeRule, DateRule, NumberRule, bind_codes, path_of
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.errors import SchemaError
from fedanon.types import FloatArray, IntArray

MissingPolicy = Literal["error", "category", "wildcard"]


def missing_mask(column: pd.Series[Any], schema: Schema) -> NDArray[np.bool_]:
    """Which cells of a column are missing: empty, or one of the schema's tokens."""
    mask = column.isna()
    if schema.missing_values and not pd.api.types.is_numeric_dtype(column):
        mask |= column.isin(schema.missing_values)
    return mask.to_numpy(dtype=bool)


def recode_carried(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame with the columns that are carried along as fine as their rules publish them."""
    changed = {
        attribute.name: _as_published(frame[attribute.name], attribute, schema)
        for attribute in schema.attributes
        if attribute.name in frame and attribute.role is not Role.QUASI_IDENTIFYING and is_recoded(attribute)
    }
    return frame.assign(**changed) if changed else frame


def is_recoded(attribute: Attribute) -> bool:
    """Whether a rule publishes the values of a column otherwise than they are written, were it carried along."""
    if isinstance(attribute, FreeText) or attribute.rule is None:
        return False
    return attribute.rule.recodes if isinstance(attribute, Numeric) else attribute.rule.level != "code"


def _as_published(column: pd.Series[Any], attribute: Attribute, schema: Schema) -> pd.Series[Any]:
    """The texts that a rule publishes for the values of a column; missing ones stay as they are."""
    assert not isinstance(attribute, FreeText)
    absent = missing_mask(column, schema)
    coded, codes = encode_column(column, attribute, schema, "category")
    shown = cell_texts(coded.own_cells, attribute)[codes]
    return pd.Series(np.where(absent, column.to_numpy(dtype=object), shown), index=column.index, dtype=object)


def encode_column(
    column: pd.Series[Any], attribute: Numeric | Categorical, schema: Schema, missing: MissingPolicy
) -> tuple[CodedColumn, IntArray]:
    absent = missing_mask(column, schema)
    count = int(absent.sum())
    if count and missing == "error":
        raise SchemaError(
            f"The quasi-identifier {attribute.name!r} has {count} missing values; "
            "choose a policy for them: missing='category' or missing='wildcard'."
        )
    if isinstance(attribute, Numeric):
        return _encode_numeric(column, attribute, absent)
    return _encode_categorical(column, attribute, absent)


def check_values(column: pd.Series[Any], attribute: Attribute, schema: Schema) -> None:
    """Raise SchemaError if a column holds values its declaration excludes; missing ones are none."""
    absent = missing_mask(column, schema)
    if isinstance(attribute, Numeric):
        numbers(column, attribute, absent)
    elif isinstance(attribute, Categorical):
        _leaves(column, attribute, absent)


def numbers(column: pd.Series[Any], attribute: Numeric, absent: NDArray[np.bool_]) -> FloatArray:
    """The values of a numeric column as floats (NaN where absent), checked against the declaration."""
    rule = attribute.rule
    if rule is None:
        parsed = pd.to_numeric(column.where(~absent), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        parsed = _read_by_rule(column, rule, absent)
    _refuse(np.isnan(parsed) & ~absent, attribute, "that are not numbers" if rule is None else rule.misfit())
    _refuse(np.isinf(parsed), attribute, "that are infinite")
    if rule is not None:
        parsed = rule.clip(parsed, attribute.domain)
    outside = (parsed < attribute.low) | (parsed > attribute.high)
    shown = "" if is_date(attribute) else f" [{attribute.low:g}, {attribute.high:g}]"
    _refuse(outside, attribute, f"outside the declared range{shown}")
    if attribute.integer:
        _refuse(~absent & (parsed != np.floor(parsed)), attribute, "that are not whole numbers")
    return parsed if rule is None else rule.settle(parsed, attribute.domain)


def _read_by_rule(column: pd.Series[Any], rule: NumberRule, absent: NDArray[np.bool_]) -> FloatArray:
    """The numbers a rule reads, each distinct cell once."""
    form = rule.formats[0] if isinstance(rule, (DateRule, BandRule)) and rule.formats else ""
    if form and not pd.api.types.is_string_dtype(column):
        # a typed file brings dates as such
        column = column.map(lambda cell: cell.strftime(form) if isinstance(cell, date) else cell, na_action="ignore")
    cells = pd.Categorical(texts(column).where(~absent))
    read = rule.read(str(cell) for cell in cells.categories)
    return np.asarray(np.append(read, np.nan)[cells.codes], dtype=np.float64)


def _refuse(bad: NDArray[np.bool_], attribute: Numeric | Categorical, what: str) -> None:
    count = int(bad.sum())
    if count:
        raise SchemaError(
            f"The column {attribute.name!r} has {count} values {what}. Correct them, declare them in the schema, or "
            "list what means missing in missing_values."
        )


def _encode_numeric(
    column: pd.Series[Any], attribute: Numeric, absent: NDArray[np.bool_]
) -> tuple[CodedColumn, IntArray]:
    values, codes = np.unique(numbers(column, attribute, absent), return_inverse=True)  # NaN sorts last
    rule, ends = attribute.rule, None
    banded = None if rule is None else rule.grain(values, attribute.domain)
    if banded is not None:
        values, first, band = np.unique(banded[0], return_index=True, return_inverse=True)
        ends, codes = banded[1][first], band[codes]
    return CodedColumn(attribute, values, bool(absent.any()), ends), codes.astype(np.int32)


def texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """A categorical column as text; whole floats lose their '.0'."""
    if pd.api.types.is_float_dtype(column):
        kept = column.dropna()
        if (kept == np.floor(kept)).all():
            column = column.astype("Int64")
    if pd.api.types.is_string_dtype(column):
        return column
    return column.astype("string")


def _encode_categorical(
    column: pd.Series[Any], attribute: Categorical, absent: NDArray[np.bool_]
) -> tuple[CodedColumn, IntArray]:
    attribute, codes = _leaves(column, attribute, absent)
    hierarchy = attribute.hierarchy
    if absent.any():
        hierarchy = hierarchy.with_missing()
        codes = np.where(absent, hierarchy.n_leaves - 1, codes).astype(np.int32)
    return CodedColumn(replace(attribute, hierarchy=hierarchy), None, bool(absent.any())), codes


def _leaves(column: pd.Series[Any], attribute: Categorical, absent: NDArray[np.bool_]) -> tuple[Categorical, IntArray]:
    """The leaf of every value (-1 where absent), checked against the taxonomy; a rule makes that of the values."""
    values = pd.Categorical(texts(column).where(~absent))
    labels: list[str | None] = [str(value) for value in values.categories]
    what = "its taxonomy does not list"
    if attribute.rule is not None:
        attribute, labels = _bound(attribute, attribute.rule, labels)
        what = f"do not have the form of {attribute.rule.type_name}" if attribute.rule else what
    lookup = np.array([attribute.hierarchy.codes.get(label or "", -1) for label in labels], dtype=np.int32)
    codes: IntArray = np.append(lookup, np.int32(-1))[values.codes]
    _refuse((codes < 0) & ~absent, attribute, f"(of {int((lookup < 0).sum())} kinds) that {what}")
    return attribute, codes


def _bound(
    attribute: Categorical, rule: CodeRule, values: Iterable[str | None]
) -> tuple[Categorical, list[str | None]]:
    """The column with the taxonomy of its values, and the label of each as published; None where it does not fit."""
    paths = [path_of(rule, value or "") for value in values]
    known = [path for path in paths if path is not None]
    if known:
        attribute = replace(attribute, hierarchy=bind_codes(rule, known, name=attribute.name))
    return attribute, [None if path is None else path[0] for path in paths]


# ---- what reading changes ------------------------------------------------------------------------


def changed_columns(schema: Schema) -> list[str]:
    """Names of the columns that are no quasi-identifiers and yet not published as they are in the table."""
    moved = {attribute.name for attribute in schema.shifted}
    carried = [a for a in schema.attributes if a.name in schema.published and a.role is not Role.QUASI_IDENTIFYING]
    return [a.name for a in carried if is_recoded(a) or a.name in moved or a.name == schema.pseudonym]


def reading_notes(schema: Schema) -> tuple[str, ...]:
    """What rules and a key change before a method sees the table: a truth about a cell is one about these values."""
    notes = []
    for attribute in schema.attributes:
        rule = attribute.rule if isinstance(attribute, Numeric) else None
        if isinstance(rule, BandRule) and rule.round_to and attribute.name in schema.published:
            step = f"{rule.round_to:g}"
            notes.append(f"{attribute.name!r} is rounded to multiples of {step}; its cells are true of these.")
        if isinstance(rule, DateRule) and attribute in schema.shifted and attribute.name in schema.published:
            most = rule.shift_days
            notes.append(f"The dates of {attribute.name!r} are moved by up to {most} days, all of a person by as many.")
    names = ", ".join(map(repr, changed_columns(schema)))
    return (*notes, f"Published as rules or the key say, not as in the table: {names}.") if names else tuple(notes)
