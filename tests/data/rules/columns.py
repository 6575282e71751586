"""Columns by rule for the tests, and values of their domains."""

from __future__ import annotations

import string
from datetime import date, timedelta
from typing import Any

from hypothesis import strategies as st

from fedanon.data.schema import Schema

DATE = {"type": "date", "format": "%d/%m/%Y", "range": ["1990-03-15", "2029-11-20"]}
_DAYS = st.dates(date(1990, 3, 15), date(2029, 11, 20)).map(lambda day: day.strftime("%d/%m/%Y"))
_DIGITS = st.text(string.digits, min_size=8, max_size=8)
_AFTER = st.sampled_from(["", ".0", ".9", "1", ".10", "19"])

_ENDS = st.sampled_from([1, 3, 4, 5, 7])


def numeric(**more: Any) -> dict[str, Any]:
    return {"type": "numeric", "range": [0, 120], "integer": True, **more}


#: a name, the entry of a schema, and texts of its domain
COLUMNS: dict[str, tuple[dict[str, Any], st.SearchStrategy[str]]] = {
    "day": (DATE, _DAYS),
    "month": ({**DATE, "level": "month"}, _DAYS),
    "decade": ({**DATE, "level": "decade"}, _DAYS),
    "two formats": ({**DATE, "format": ["%Y-%m-%d", "%d/%m/%Y %H:%M", "%d/%m/%Y"]}, _DAYS),
    "age": (
        {"type": "date", "format": "%Y-%m-%d", "age_at": "2024-02-29", "range": [0, 100], "top": 90},
        st.dates(date(1900, 1, 1), date(2024, 2, 29)).map(date.isoformat),
    ),
    "cuts": (numeric(bands=[18, 40, 65]), st.integers(0, 120).map(str)),
    "width": (numeric(bands=7), st.integers(0, 120).map(str)),
    "open": (numeric(bands=5, top=90, bottom=18), st.integers(-30, 150).map(str)),
    "rounded": (numeric(round_to=5), st.integers(0, 120).map(str)),
    "unit": (
        {"type": "numeric", "range": [0, 500], "unit": "mg/dL"},
        st.floats(0, 500).map(lambda x: f"{x!r} mg/dL"),
    ),
    "real bands": ({"type": "numeric", "range": [0, 50], "bands": [7.5, 20]}, st.floats(0, 50).map(repr)),
    "postal": ({"type": "code", "form": "99999-999", "prefixes": [1, 2, 5]}, _DIGITS),
    "area": ({"type": "code", "form": "(99) 9X", "prefixes": [2]}, st.from_regex("[0-9]{3}[0-9A-Z]", fullmatch=True)),
    "postal to 2": ({"type": "code", "form": "99999-999", "prefixes": [2, 5], "level": 2}, _DIGITS),
    "atc": (
        {"type": "atc"},
        st.builds(lambda code, n: code[:n], st.from_regex("[A-Z][0-9]{2}[A-Z]{2}[0-9]{2}", fullmatch=True), _ENDS),
    ),
    "icd10": (
        {"type": "icd10"},
        st.builds("{}{:02}{}".format, st.sampled_from(string.ascii_uppercase), st.integers(0, 99), _AFTER),
    ),
    "block": (
        {"type": "icd10", "level": "block"},
        st.builds("{}{:02}{}".format, st.sampled_from(string.ascii_uppercase), st.integers(0, 99), _AFTER),
    ),
    "icd9": (
        {"type": "icd9"},
        st.one_of(
            st.builds("{:03}{}".format, st.integers(0, 999), _AFTER),
            st.builds("V{:02}{}".format, st.integers(0, 99), _AFTER),
            st.builds("E{:03}{}".format, st.integers(0, 999), st.sampled_from(["", ".0", "1"])),
        ),
    ),
}


def schema_of(kind: str) -> Schema:
    """A schema of one quasi-identifier."""
    entry = COLUMNS[kind][0]
    return Schema.from_dict({"attributes": {"x": {"role": "quasi_identifying", **entry}}})


def some_day(offset: int) -> str:
    return (date(2024, 1, 1) + timedelta(days=offset)).strftime("%d/%m/%Y")
