"""CSV files at the border: every column as text, and one clear error for whatever is wrong with a file.

The bytes are checked before they are parsed: what cannot be a sound table never
reaches the parser, and no message quotes a cell.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.readers import READERS
from fedanon.data.schema import Schema
from fedanon.errors import ConfigError, DataError
from fedanon.io.dialect import (
    AUTO,
    Dialect,
    comma_columns,
    find_encoding,
    find_line_end,
    find_quoting,
    find_separator,
    has_wide_mark,
    with_points,
)


@READERS.register("csv")
def read_csv(path: Path, schema: Schema | None, encoding: str, *, header: bool = True) -> pd.DataFrame:
    """All columns of a CSV file; see :func:`fedanon.data.readers.read_table`."""
    return read_with_dialect(path, schema, encoding, header=header)[0]


def read_with_dialect(
    path: Path,
    schema: Schema | None,
    encoding: str,
    *,
    header: bool = True,
    separator: str | None = None,
    decimal: str | None = None,
) -> tuple[pd.DataFrame, Dialect]:
    """All columns as text, numbers with a decimal point, and the dialect the file is written in.

    Without a ``header`` line the columns are called c1, c2 and so on. ``separator`` and ``decimal`` mark are found
    unless they are given.
    """
    Dialect(separator=separator or ",", decimal=decimal or ".")  # refuses what is neither
    frame, dialect = _read(path, encoding, separator, header=header)
    commas = comma_columns(frame, schema, dialect.separator, decimal)
    for name in commas:
        frame[name] = with_points(frame[name])
    return frame, replace(dialect, decimal=",") if commas else dialect


def read_frame(path: str | Path, *, encoding: str = "utf-8", separator: str | None = None) -> pd.DataFrame:
    """Read a CSV file with all columns as text; an empty cell is missing, and nothing else is.

    Parameters
    ----------
    path : the file; its first line names the columns.
    encoding : of the file, ``auto`` to find it; a byte order mark is accepted.
    separator : of the fields; ``None`` finds it.

    Raises
    ------
    DataError
        If the file is absent, empty, damaged, compressed, or not a table.
    """
    return _read(Path(path), encoding, separator)[0]


def _read(path: Path, encoding: str, separator: str | None, *, header: bool = True) -> tuple[pd.DataFrame, Dialect]:
    raw = read_raw(path, wide=_is_wide(encoding), find_wide=encoding == AUTO)
    data, encoding = _as_utf8(raw, path, encoding)
    if separator is None:
        separator = find_separator(data)
    dialect = Dialect(
        separator=separator,
        encoding=encoding,
        line_end=find_line_end(data),
        quoting=find_quoting(data, separator),
        header=header,
    )
    if not header:
        data = _with_header(data, path, separator)
    names = read_header(data, path, separator)
    data = check_fields(data, path, separator, len(names), before=int(not header))
    try:
        frame = pd.read_csv(
            io.BytesIO(data),
            sep=separator,
            header=0,
            names=names,
            index_col=False,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            # in a table of one column, an empty line is a row with a missing cell
            skip_blank_lines=len(names) > 1,
            low_memory=False,
        )
    except (ValueError, OverflowError, MemoryError):
        # the parser's own message may quote the file
        raise DataError(f"The file {path.name} cannot be parsed as a table.") from None
    return frame, dialect


def _is_wide(encoding: str) -> bool:
    """Whether the encoding writes ordinary letters with NUL bytes."""
    if encoding == AUTO:
        return False
    try:
        return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    except LookupError:
        raise ConfigError("The 'encoding' parameter must name a text encoding, such as utf-8 or latin-1.") from None


def _as_utf8(data: bytes, path: Path, encoding: str) -> tuple[bytes, str]:
    """The text as UTF-8 without a byte order mark, and the encoding it was in."""
    if encoding == AUTO:
        encoding = find_encoding(data) or "utf-8"
    elif codecs.lookup(encoding).name == "utf-8" and data.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except LookupError:
        raise ConfigError("The 'encoding' parameter must name a text encoding, such as utf-8 or latin-1.") from None
    except UnicodeError:
        raise DataError(
            f"The file {path.name} is not {encoding} text. Name its encoding with the 'encoding' option, "
            "such as latin-1 or utf-16."
        ) from None
    if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
        data = text.encode()
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise DataError(f"The file {path.name} is empty.")
    if data[:1] in b"\r\n":
        raise DataError(f"The first line of the file {path.name} is empty; it has to name the columns.")
    return data, encoding


# ---- What a CSV file has to pass before it is parsed ---------------------------------------------
#
# Lines are reported by number and never quoted: even the first one may hold a record where a header was forgotten.


MAX_LINE = 2**20
MAX_COLUMNS = 16384
_CHUNK = 2**20
_BLOCK = 16 * 2**20

#: how the usual compressed and binary formats begin
MAGIC = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"PAR1": "parquet",
    b"\x89HDF": "HDF5",
    b"\xd0\xcf\x11\xe0": "old Excel",
    b"%PDF": "PDF",
}


def read_raw(path: Path, *, wide: bool = False, find_wide: bool = False) -> bytes:
    """The bytes of a text file, given up early where it is not one: nothing is unpacked, no endless line is held.

    Parameters
    ----------
    path : the file.
    wide : whether its encoding uses NUL bytes (UTF-16, UTF-32).
    find_wide : whether a byte order mark of UTF-16 says so too.
    """
    try:
        with path.open("rb") as file:
            wide = wide or (find_wide and has_wide_mark(file.peek(4)[:4]))
            data = b"".join(_checked_chunks(file, path.name, wide=wide))
    except FileNotFoundError:
        raise DataError(f"The file {path} does not exist.") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a file.") from None
    except OSError as error:
        raise DataError(f"The file {path} cannot be read: {error.strerror}.") from None
    except MemoryError:
        raise DataError(f"The file {path.name} does not fit into memory.") from None
    if not data:
        raise DataError(f"The file {path.name} is empty.")
    return data


def _checked_chunks(file: io.BufferedReader, name: str, *, wide: bool) -> Iterator[bytes]:
    open_line = 0  # bytes of the line that the last chunk left unfinished
    for number, chunk in enumerate(iter(lambda: file.read(_CHUNK), b"")):
        if number == 0:
            _refuse_binary(chunk, name)
        if not wide and b"\0" in chunk:
            raise DataError(
                f"The file {name} holds NUL bytes: it is binary, or UTF-16 (then set the 'encoding' option)."
            )
        ends = np.flatnonzero(_line_ends(np.frombuffer(chunk, dtype=np.uint8)))
        lengths = np.diff(ends, prepend=-1 - open_line, append=len(chunk))
        if lengths.max() > MAX_LINE:
            raise DataError(f"The file {name} has a line longer than {MAX_LINE // 2**20} MiB.")
        open_line = int(lengths[-1]) - 1
        yield chunk


def _line_ends(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.asarray((data == ord("\n")) | (data == ord("\r")), dtype=np.bool_)


def _refuse_binary(start: bytes, name: str) -> None:
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            raise DataError(f"The file {name} is compressed or binary ({kind}); unpack or export it to CSV first.")


def read_header(data: bytes, path: Path, separator: str) -> list[str]:
    """The column names of a table; duplicates, empty names and too many of them are refused."""
    names = _first_record(data, path, separator)
    if len(names) > MAX_COLUMNS:
        raise DataError(f"The file {path.name} has {len(names)} columns; at most {MAX_COLUMNS} are read.")
    nameless = [i for i, name in enumerate(names, 1) if not name.strip()]
    if nameless:
        raise DataError(
            f"The file {path.name} has {len(nameless)} columns without a name, the first is column {nameless[0]}. Name "
            "them in the header line, or leave them out of the file if they only number its rows."
        )
    first_of: dict[str, int] = {}
    for i, name in enumerate(names, 1):
        if first_of.setdefault(name, i) != i:
            raise DataError(
                f"The columns {first_of[name]} and {i} of the file {path.name} have the same name. Rename one of "
                "them in the header line."
            )
    return names


def _first_record(data: bytes, path: Path, separator: str) -> list[str]:
    text = io.StringIO(data[: 2 * MAX_LINE].decode(errors="ignore"), newline="")
    try:
        return next(csv.reader(text, delimiter=separator, strict=True))
    except csv.Error:
        raise DataError(f"The file {path.name} has a damaged or unclosed quote in its first line.") from None


def _with_header(data: bytes, path: Path, separator: str) -> bytes:
    """The text with a first line that calls the columns c1, c2 and so on."""
    first = _first_record(data, path, separator)
    return separator.join(f"c{i}" for i in range(1, len(first) + 1)).encode() + b"\n" + data


def check_fields(data: bytes, path: Path, separator: str, n_columns: int, *, before: int = 0) -> bytes:
    """Refuse a table in which a row has too few or too many fields; returns the bytes to parse.

    ``before`` is the number of lines in front that are not the file's.
    Without quotes a field ends at every separator, and all lines are counted at once; the line ends are then made
    alike. Otherwise every record is read.
    """
    if b'"' in data:
        fields, lines = _fields_of_records(data, path, separator, before)
    else:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        fields, lines = _fields_of_lines(data, separator, skip_empty=n_columns > 1)
    if len(fields) < 2:
        raise DataError(f"The file {path.name} has a header line but no rows.")
    wrong = np.flatnonzero(fields != n_columns)
    if wrong.size:
        raise DataError(
            f"The file {path.name} has {wrong.size} rows whose number of fields is not {n_columns}, as in the "
            f"{'first line' if before else 'header'}; the first is line {lines[wrong[0]] - before} with "
            f"{fields[wrong[0]]} fields."
        )
    return data


def _fields_of_lines(data: bytes, separator: str, *, skip_empty: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of fields and line number of every line."""
    counts, numbers, seen = [], [], 0
    for block in _blocks(data):
        ends = np.flatnonzero(block == ord("\n"))
        if block[-1] != ord("\n"):
            ends = np.append(ends, len(block))
        separators = np.searchsorted(np.flatnonzero(block == ord(separator)), ends)
        kept = np.diff(ends, prepend=-1) > 1 if skip_empty else np.ones(len(ends), dtype=bool)
        counts.append((np.diff(separators, prepend=0) + 1)[kept])
        numbers.append(np.flatnonzero(kept) + seen + 1)
        seen += len(ends)
    return np.concatenate(counts), np.concatenate(numbers)


def _blocks(data: bytes) -> Iterator[NDArray[np.uint8]]:
    """Pieces of whole lines, so that memory stays bounded."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK) + 1 or len(data)
        yield np.frombuffer(data, dtype=np.uint8, count=end - start, offset=start)
        start = end


def _fields_of_records(
    data: bytes, path: Path, separator: str, before: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of fields and first line number of every record, quotes observed."""
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator, strict=True)
    counts, numbers, line = [], [], 1
    try:
        for record in reader:
            if record:
                counts.append(len(record))
                numbers.append(line)
            line = reader.line_num + 1
    except csv.Error:
        _refuse_quote(path, line - before)
    return np.array(counts, dtype=np.int64), np.array(numbers, dtype=np.int64)


def _refuse_quote(path: Path, line: int) -> NoReturn:
    raise DataError(
        f"The file {path.name} has a damaged or unclosed quote in the record that begins on line {line}."
    ) from None
