"""Reading a table from a file of any format, chosen by the ending of its name.

The formats themselves are in :mod:`fedanon.io`, and other distributions may add more (entry-point group
``fedanon.readers``); they register here, below everything that needs a table, so that a privacy model can read its
population without knowing how.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from fedanon.data.schema import Schema
from fedanon.data.table import MissingPolicy, Table
from fedanon.registry import Registry

#: reads a file in an encoding; where a schema is given, its columns, whose types are checked if the format has types
Reader = Callable[[Path, Schema | None, str], pd.DataFrame]

#: by the ending of the file's name
READERS: Registry[Reader] = Registry("reader", "fedanon.io", group="fedanon.readers")

#: how a file is read whose ending no reader has
DEFAULT = "csv"


def read_table(path: str | Path, schema: Schema, *, missing: MissingPolicy = "error", encoding: str = "auto") -> Table:
    """Read a file and check it against ``schema``.

    Parameters
    ----------
    path : the file: Parquet if its name ends in .parquet, CSV with a header line if no other reader has its ending.
    schema : what the columns are.
    missing : how missing quasi-identifiers are treated, see :meth:`Table.from_frame`.
    encoding : of a text file; ``auto`` finds UTF-8, else takes Windows-1252 or Latin-1.
    """
    return Table.from_frame(_reader(path)(Path(path), schema, encoding), schema, missing=missing)


def read_frame(path: str | Path, *, encoding: str = "auto") -> pd.DataFrame:
    """All columns of a file as its format gives them; of a CSV file as text."""
    return _reader(path)(Path(path), None, encoding)


def _reader(path: str | Path) -> Reader:
    return READERS[format_of(path)]


def format_of(path: str | Path) -> str:
    """The format of a file, by the ending of its name."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return ending if ending in READERS else DEFAULT
