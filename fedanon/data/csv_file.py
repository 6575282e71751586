"""CSV files at the border: every column as text, and one clear error for whatever is wrong with a file.

The bytes are checked before they are parsed (:mod:`fedanon.data.csv_checks`): what cannot be a sound table never
reaches the parser, and no message quotes a cell.
"""

from __future__ import annotations

import codecs
import io
from pathlib import Path

import pandas as pd

from fedanon.data.csv_checks import check_fields, read_header, read_raw
from fedanon.data.schema import Schema
from fedanon.data.table import MissingPolicy, Table
from fedanon.errors import ConfigError, DataError

SEPARATORS = (",", ";", "\t")


def read_table(
    path: str | Path,
    schema: Schema,
    *,
    missing: MissingPolicy = "error",
    encoding: str = "utf-8",
    separator: str | None = None,
) -> Table:
    """Read a CSV file and check it against ``schema``.

    Parameters
    ----------
    path : the file; its first line names the columns.
    schema : what the columns are.
    missing : how missing quasi-identifiers are treated, see :meth:`Table.from_frame`.
    encoding, separator : see :func:`read_frame`.
    """
    return Table.from_frame(read_frame(path, encoding=encoding, separator=separator), schema, missing=missing)


def read_frame(path: str | Path, *, encoding: str = "utf-8", separator: str | None = None) -> pd.DataFrame:
    """Read a CSV file with all columns as text; an empty cell is missing, and nothing else is.

    Parameters
    ----------
    path : the file; its first line names the columns.
    encoding : of the file; a byte order mark is accepted.
    separator : of the fields; ``None`` takes ',' or, where the first line has none, ';' or a tab.

    Raises
    ------
    DataError
        If the file is absent, empty, damaged, compressed, or not a table.
    """
    path = Path(path)
    data = _as_utf8(read_raw(path, wide=_is_wide(encoding)), path, encoding)
    separator = _separator(data, separator)
    names = read_header(data, path, separator)
    data = check_fields(data, path, separator, len(names))
    try:
        return pd.read_csv(
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


def _is_wide(encoding: str) -> bool:
    """Whether the encoding writes ordinary letters with NUL bytes."""
    try:
        return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    except LookupError:
        raise ConfigError("The 'encoding' parameter must name a text encoding, such as utf-8 or latin-1.") from None


def _as_utf8(data: bytes, path: Path, encoding: str) -> bytes:
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
    return data


def _separator(data: bytes, given: str | None) -> str:
    if given is not None:
        if len(given) != 1 or not given.isascii() or given in '"\r\n\0' or given.isalnum():
            raise ConfigError("The 'separator' parameter must be one character, such as ',' or ';' or a tab.")
        return given
    first = data.splitlines()[0].decode()
    return next((separator for separator in SEPARATORS if separator in first), ",")
