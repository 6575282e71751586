"""Dialect: how a CSV file writes a table, found in the file and handed on to what is written from it.

With a decimal comma, numbers are written ``1,5`` and intervals ``[1,5; 2,5]``: the semicolon parts the bounds, so that
the comma has one meaning. In memory and in messages numbers have a point, whatever the file has.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from fedanon.data.schema import Schema, type_name
from fedanon.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
#: stands for an encoding that is to be found
AUTO = "auto"
#: tried in this order; the last one fits any bytes
ENCODINGS = ("utf-8", "cp1252", "latin-1")
#: records of the beginning by which a separator is judged
SAMPLE = 20
#: how fields are quoted, and how a person is told
SOME_QUOTED, ALL_QUOTED = "some", "all"
QUOTING = {SOME_QUOTED: "quotes where needed", ALL_QUOTED: "every field quoted"}
#: what says how to read a file that was written
WRITTEN = ("separator", "decimal", "encoding", "line_end", "quoting")


@dataclass(frozen=True)
class Dialect:
    """How a CSV file writes a table."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    line_end: str = "\n"
    quoting: str = SOME_QUOTED
    header: bool = True

    def __post_init__(self) -> None:
        check_separator(self.separator)
        if self.quoting not in QUOTING:
            raise ConfigError(f"The 'quoting' parameter must be one of: {', '.join(QUOTING)}.")
        if self.decimal not in (".", ","):
            raise ConfigError("The 'decimal' parameter must be '.' or ','.")
        try:
            "a".encode(self.encoding)
        except LookupError:
            raise ConfigError("The encoding must be that of a text, such as utf-8 or latin-1.") from None

    def __str__(self) -> str:
        between = {"\t": "tab", " ": "blank"}.get(self.separator, f"'{self.separator}'")
        mark = "decimal comma" if self.decimal == "," else "decimal point"
        header = "header line" if self.header else "no header line"
        return f"{self.encoding}, separator {between}, {mark}, {header}, {QUOTING[self.quoting]}"

    def to_dict(self) -> dict[str, str]:
        """For the manifest, of what is written: a release always has a header line."""
        usual = {"quoting": SOME_QUOTED}
        return {name: value for name in WRITTEN if (value := getattr(self, name)) != usual.get(name)}

    @classmethod
    def from_dict(cls, document: Any) -> Dialect:
        """The inverse of :meth:`to_dict`."""
        try:
            said = {"quoting": SOME_QUOTED, **document}
            return replace(cls(), **{name: str(said[name]) for name in WRITTEN})  # type: ignore[arg-type]
        except (KeyError, TypeError, ConfigError):
            raise DataError("The dialect in the manifest cannot be read.") from None

    def changes_from(self, found: Dialect | None) -> list[dict[str, str]]:
        """What differs from the dialect of the input, for the manifest."""
        if found is None:
            return []
        before, after = asdict(found), asdict(self)
        changed = [
            {"kind": kind.replace("_", " "), "from": before[kind], "to": after[kind]}
            for kind in ("encoding", "separator", "decimal", "line_end")
            if before[kind] != after[kind]
        ]
        return changed if found.header else [*changed, {"kind": "header", "from": "-", "to": "c1, c2, ..."}]


def check_separator(separator: str) -> None:
    """Raise ConfigError unless fields can be separated by it."""
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0' or separator.isalnum():
        raise ConfigError("The 'separator' parameter must be one character, such as ',' or ';' or a tab.")


# ---- found in the bytes of a file ----------------------------------------------------------------


def find_encoding(data: bytes) -> str | None:
    """The encoding of a text, tried strictly; None if it is damaged UTF-8."""
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if has_wide_mark(data):
        return "utf-16"
    for encoding in ENCODINGS:
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            # sound letters of several bytes beside broken ones: the text was UTF-8 once
            if encoding == "utf-8" and re.search(r"[^\x00-\x7f\ufffd]", data.decode("utf-8", errors="replace")):
                return None
            continue
        return encoding
    return None


def has_wide_mark(data: bytes) -> bool:
    """Whether a text begins with the byte order mark of UTF-16, as what Excel saves as "Unicode text" does."""
    wider = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not data.startswith(wider)


def find_separator(data: bytes) -> str:
    """The separator by which the first records of a UTF-8 text have the most fields, the same number in all."""
    start = data[: 2**18].decode(errors="ignore")
    counts = {separator: _field_counts(start, separator) for separator in SEPARATORS}
    even = {separator: found[0] for separator, found in counts.items() if found and len(set(found)) == 1}
    candidates = {s: n for s, n in even.items() if n > 1} or {s: found[0] for s, found in counts.items() if found}
    return max(candidates, key=lambda separator: candidates[separator], default=",")


def _field_counts(text: str, separator: str) -> list[int]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    counts: list[int] = []
    try:
        for record in reader:
            if record:
                counts.append(len(record))
            if len(counts) > SAMPLE:
                break
    except csv.Error:
        return counts
    return counts


def find_line_end(data: bytes) -> str:
    """The end of the first line; a carriage return alone, which is not written, counts as a newline."""
    return "\r\n" if data[: data.find(b"\n") + 1].endswith(b"\r\n") else "\n"


def find_quoting(data: bytes, separator: str) -> str:
    """Whether every field of the first lines is quoted."""
    lines = [line for line in data[: 2**16].splitlines()[:SAMPLE] if line]
    field = rb'"(?:[^"]|"")*"'
    quoted = re.compile(field + b"(?:" + re.escape(separator).encode() + field + b")*")
    return ALL_QUOTED if lines and all(map(quoted.fullmatch, lines)) else SOME_QUOTED


_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")


def lacks_header(frame: pd.DataFrame) -> bool:
    """Whether the names of a table's columns look like one more record of it.

    They do if some are numbers or dates like all the values below them, unless a column of such values has a name.
    """
    start = frame.head(50 * SAMPLE)
    marked = {str(name): _is_measure(str(name)) for name in start.columns}
    known = {str(name): start[name].dropna() for name in start.columns}
    measures = {name: all(map(_is_measure, map(str, values))) for name, values in known.items() if len(values)}
    return any(marked[name] and measures[name] for name in measures) and not any(
        measures[name] and not marked[name] for name in measures
    )


def _is_measure(text: str) -> bool:
    return is_number(text) or is_number(text, ",") or _DATE.fullmatch(text) is not None


# ---- decimal commas ------------------------------------------------------------------------------

_COMMA = r"[+-]?(?:\d+(?:,\d*)?|,\d+)(?:[eE][+-]?\d+)?"
_POINT = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_COMMA_NUMBER, _POINT_NUMBER = re.compile(_COMMA), re.compile(_POINT)
_COMMA_CELL = re.compile(rf"\[({_COMMA}); ({_COMMA})\]|({_COMMA})")
_POINT_CELL = re.compile(rf"\[({_POINT}), ({_POINT})\]|({_POINT})")


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number."""
    return (_COMMA_NUMBER if decimal == "," else _POINT_NUMBER).fullmatch(text) is not None


def comma_columns(frame: pd.DataFrame, schema: Schema | None, separator: str, decimal: str | None = None) -> list[str]:
    """The columns of numbers with a decimal comma, in a file whose separator is another character.

    With a schema, those it declares numeric; a column of another type is text, and not changed. Columns with commas
    beside columns with points are refused. A ``decimal`` mark that is given is not looked for.
    """
    if decimal == "." or (decimal is None and separator == ","):
        return []
    tokens = set(schema.missing_values) if schema is not None else set()
    declared = [name for name in frame.columns if schema is None or _is_numeric(schema, str(name))]
    marks = {str(name): _mark(frame[name], tokens) for name in declared}
    commas, points = ([name for name, mark in marks.items() if mark == wanted] for wanted in ",.")
    if commas and points and schema is not None:
        raise DataError(
            f"Numbers have a decimal comma in {', '.join(commas[:5])} and a decimal point in {', '.join(points[:5])}; "
            "write them alike."
        )
    return commas


def _is_numeric(schema: Schema, name: str) -> bool:
    return name in schema.names and type_name(schema[name]) == "numeric"


def _mark(column: pd.Series[Any], tokens: set[str]) -> str:
    """The decimal mark of a column of numbers; nothing if it has none, or other values."""
    known = {str(value) for value in column.dropna().unique()} - tokens
    for mark in ",.":
        if any(mark in value for value in known) and all(is_number(value, mark) for value in known):
            return mark
    return ""


def with_points(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers and intervals with points, from those with commas; other texts are left alone."""
    return texts.map(_to_point, na_action="ignore")


def with_commas(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers and intervals with commas, from those with points; other texts are left alone."""
    return texts.map(lambda text: _to_comma(str(text)), na_action="ignore")


def _to_point(text: str) -> str:
    found = _COMMA_CELL.fullmatch(text)
    if found is None:
        return text
    low, high, point = (part and part.replace(",", ".") for part in found.groups())
    return point or f"[{low}, {high}]"


def _to_comma(text: str) -> str:
    found = _POINT_CELL.fullmatch(text)
    if found is None:
        return text
    low, high, point = (part and part.replace(".", ",") for part in found.groups())
    return point or f"[{low}; {high}]"


def has_comma_cells(frame: pd.DataFrame, schema: Schema) -> bool:
    """Whether numeric columns of a released file have cells with a decimal comma, and none with a point."""
    cells = {
        str(text) for name in frame.columns if _is_numeric(schema, str(name)) for text in frame[name].dropna().unique()
    }
    written = [text for text in cells if "," in text]
    return bool(written) and all(_COMMA_CELL.fullmatch(text) and not _POINT_CELL.fullmatch(text) for text in written)


def dialect_of(document: Mapping[str, Any]) -> Dialect:
    """The dialect a manifest states; that of version 0.1 if it says nothing."""
    return Dialect.from_dict(document["dialect"]) if "dialect" in document else Dialect()
