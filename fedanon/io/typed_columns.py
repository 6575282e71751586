"""Columns of Python values, as spreadsheets and databases give them: numbers stay numbers, dates become ISO text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from fedanon.data.schema import Schema
from fedanon.errors import DataError

#: what a cell may be
_PLAIN = (str, int, float, Decimal, date, time, UUID)


def typed_frame(columns: Mapping[str, Sequence[Any]], schema: Schema | None) -> pd.DataFrame:
    """A table of columns; numbers the schema lists in ``missing_values`` are missing."""
    numbered = enumerate(columns.items(), 1)
    frame = pd.DataFrame({name: typed_column(values, number) for number, (name, values) in numbered})
    absent = [number for token in schema.missing_values if (number := _number(token)) is not None] if schema else []
    if absent:
        for name in frame.columns:
            if pd.api.types.is_numeric_dtype(frame[name]):
                frame[name] = frame[name].mask(frame[name].isin(absent).to_numpy(dtype=bool, na_value=False))
    return frame


def typed_column(values: Sequence[Any], number: int = 1) -> pd.Series[Any]:
    """A column of numbers if all its values are, else of text; None and the empty text are missing.

    A message names it by its ``number``: where a header was forgotten, its name is a cell.

    Raises
    ------
    DataError
        If a value is none that a table holds, such as a picture or a list.
    """
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind == "string":
        return pd.Series(values, dtype="str").replace("", None)
    if kind == "integer" and max(abs(value) for value in values if value is not None) < 2**63:
        return pd.Series(values, dtype="Int64")
    if kind in ("floating", "mixed-integer-float", "decimal"):
        return pd.Series([np.nan if value is None else float(value) for value in values], dtype="float64")
    strange = sum(value is not None and not isinstance(value, _PLAIN) for value in values)
    if strange:
        raise DataError(
            f"The column number {number} has {strange} values that are neither numbers, texts nor dates. Leave it out, "
            "or write it as text."
        )
    return pd.Series([None if value in (None, "") else plain_text(value) for value in values], dtype="str")


def plain_text(value: Any) -> str:
    """A value as a CSV file would have it: dates by ISO 8601, without a time if it is midnight."""
    if isinstance(value, datetime):
        whole_day = value.time() == time() and value.tzinfo is None
        return value.date().isoformat() if whole_day else value.isoformat(sep=" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (float, Decimal)) and value == value // 1:
        return str(int(value))
    return str(value)


def _number(token: str) -> float | None:
    try:
        return float(token)
    except ValueError:
        return None
