"""Reading a table from a file of any format, chosen by the ending of its name.

The formats themselves are in :mod:`fedanon.io`, and other distributions may add more (entry-point group
``fedanon.readers``); they register here, below everything that needs a table, so that a privacy model can read its
population without knowing how.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.data.schema import Schema
from fedanon.data.table import MissingPolicy, Table
from fedanon.errors import ConfigError
from fedanon.registry import Registry

#: reads a file: ``(path, schema or None, encoding)``; where a schema is given, its columns, whose types are checked if
#: the format has types. What else a format can be asked for are keyword parameters, such as ``sheet``.
Reader = Callable[..., pd.DataFrame]

#: by the ending of the file's name
READERS: Registry[Reader] = Registry("reader", "fedanon.io", group="fedanon.readers")

#: how a file is read whose ending no reader has
DEFAULT = "csv"


def read_table(
    path: str | Path, schema: Schema, *, missing: MissingPolicy = "error", encoding: str = "auto", **options: Any
) -> Table:
    """Read a file and check it against ``schema``.

    Parameters
    ----------
    path : the file: Parquet, Excel or NDJSON by the ending of its name, CSV if no other reader has it.
    schema : what the columns are.
    missing : how missing quasi-identifiers are treated, see :meth:`Table.from_frame`.
    encoding : of a text file; ``auto`` finds UTF-8, else takes Windows-1252 or Latin-1.
    options : of the format: ``header`` (CSV), ``sheet`` (Excel), ``views`` (NDJSON).
    """
    return Table.from_frame(read_file(path, schema, encoding=encoding, **options), schema, missing=missing)


def read_frame(path: str | Path, *, encoding: str = "auto", **options: Any) -> pd.DataFrame:
    """All columns of a file as its format gives them; of a CSV file as text."""
    return read_file(path, None, encoding=encoding, **options)


def read_file(path: str | Path, schema: Schema | None, *, encoding: str = "auto", **options: Any) -> pd.DataFrame:
    """The columns of a file; with a schema, as it needs them. Options that are None or empty are not given."""
    given = {name: value for name, value in options.items() if value not in (None, "", ())}
    check_options(Path(path), given)
    return READERS[format_of(path)](Path(path), schema, encoding, **given)


def check_options(path: Path, given: dict[str, Any]) -> None:
    """Raise ConfigError where a file is asked for what its format does not have."""
    known = inspect.signature(READERS[format_of(path)]).parameters
    unfit = [name for name in given if name not in known]
    if unfit:
        raise ConfigError(f"The file {path.name} is read without {', '.join(unfit)}: its format has no such thing.")


def format_of(path: str | Path) -> str:
    """The format of a file, by the ending of its name."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return ending if ending in READERS else DEFAULT
