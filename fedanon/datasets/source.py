"""DataSource: where a table lies and how it is read, the same for every command and every experiment.

A source is a file, a file per node, a folder of them, a database with a query, FHIR resources with a view, or a data
set by name. What it says of itself in a result are names of files and hashes, never a folder, an address or a cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.readers import READERS, format_of, read_file
from fedanon.data.schema import Schema
from fedanon.data.table import MissingPolicy, Table
from fedanon.datasets import DATASETS, load
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.io.csv import read_with_dialect
from fedanon.io.dialect import Dialect, lacks_header
from fedanon.io.fhir import ENDING as NDJSON
from fedanon.io.fhir import read_ndjson
from fedanon.io.manifest import file_sha256
from fedanon.io.outputs import schema_files
from fedanon.io.person_key import read_person_key
from fedanon.io.sql import database_file, is_database, public_name, read_query
from fedanon.types import IndexArray

#: what beside the endings of the readers is taken for a table in a folder
TEXT_ENDINGS = ("csv", "tsv", "txt")
#: formats in which the names of the columns are cells like others
HEADED = ("csv", "xlsx", "xlsm")


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Where a table comes from.

    Parameters
    ----------
    data : a file, a folder with a file per node, the address of a database, or the name of a data set; or several
        files, one per node.
    schema : file of the schema; a data set brings its own.
    key : file of the key of pseudonyms and shifted dates, where the schema declares any.
    quasi : numeric columns ``a,b,c``, or ``all``, as quasi-identifiers, instead of a schema.
    missing : how missing quasi-identifiers are treated.
    encoding : of text files; ``auto`` finds it.
    separator, decimal : of CSV files; empty to find them.
    header : whether CSV files and sheets begin with the names of the columns; None for yes, unless they look like a
        record and there is no schema.
    sheet : of an Excel workbook.
    query : for a database.
    views : files of SQL-on-FHIR views, for FHIR resources.
    sha256 : what it was found to hold, so that a checkpoint is not taken for one of other data.
    found : sizes and times of its files, so that one which changed is not taken for what was read before.
    """

    data: tuple[str, ...]
    schema: str = ""
    key: str = ""
    quasi: str = ""
    missing: MissingPolicy = "error"
    encoding: str = "auto"
    separator: str = ""
    decimal: str = ""
    header: bool | None = None
    sheet: str = ""
    query: str = ""
    views: tuple[str, ...] = ()
    sha256: str = field(default="", compare=False)
    found: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not self.data or not all(self.data):
            raise ConfigError("Name a file, a folder, a database or a data set to be read.")
        if self.is_named:
            if self.missing != "error" or self._says_how or self.query or self.views:
                raise ConfigError(f"The data set {self.data[0]!r} is read as it is; give a file to say how it is read.")
        elif self.query and not any(map(is_database, self.data)):
            raise ConfigError("A query goes with a database, such as sqlite:///file.db.")
        elif any(map(is_database, self.data)) and (self._says_how or self.views):
            raise ConfigError("A database is read by its query: how a file is read, a sheet and views go with files.")

    # ---- settings -------------------------------------------------------------------------------

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> DataSource:
        """The source that :meth:`to_settings` describes."""
        lists = {name: tuple(settings[name]) for name in ("data", "views") if name in settings}
        return cls(**{**settings, **lists})

    def to_settings(self) -> dict[str, Any]:
        """The fields that are not the usual ones, for settings that travel."""
        chosen = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "found"}
        usual = {entry.name: entry.default for entry in fields(self)}
        lists = {name: list(chosen[name]) for name in ("data", "views")}
        return {name: value for name, value in {**chosen, **lists}.items() if chosen[name] != usual[name]}

    def as_found(self) -> DataSource:
        """The same with the state its files are in now."""
        states = [file.stat() for file in self.inputs if file.exists()]
        return replace(self, found=tuple((state.st_size, state.st_mtime_ns) for state in states))

    def absolute(self, folder: Path | None = None) -> DataSource:
        """The same wherever it is read from; names of files are relative to ``folder``, by default to this one."""
        base = (folder or Path()).absolute()
        if self.is_named:
            return self
        return replace(
            self,
            data=tuple(locate(each, base) for each in self.data),
            schema=self.schema and str(base / self.schema),
            key=self.key and str(base / self.key),
            views=tuple(str(base / view) for view in self.views),
        )

    @property
    def _says_how(self) -> bool:
        return self.header is not None or bool(self.sheet or self.separator or self.decimal)

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def is_named(self) -> bool:
        """Whether it is a data set by name."""
        return len(self.data) == 1 and not (self.schema or self.quasi) and self.data[0] in DATASETS

    @property
    def name(self) -> str:
        """What it is called in results: a name without a folder."""
        first = self.data[0]
        if self.is_named:
            return first
        return public_name(first) if is_database(first) else "+".join(Path(each).stem for each in self.data[:3])

    @property
    def inputs(self) -> list[Path]:
        """The files that are read, which no output may be."""
        if self.is_named:
            return []
        files = [database_file(each) if is_database(each) else Path(each) for each in self.data]
        listed = [file for each in files if each for file in (sorted(each.iterdir()) if each.is_dir() else [each])]
        schema = schema_files(Path(self.schema)) if self.schema else []
        return [*listed, *schema, *map(Path, (self.key, *self.views) if self.key else self.views)]

    @property
    def has_parts(self) -> bool:
        """Whether it lies in several files, one per node."""
        return not self.is_named and len(self._places()) > 1

    def _places(self) -> list[str]:
        """One address or file per node: those given, or those in the folder."""
        if len(self.data) > 1 or is_database(self.data[0]):
            return list(self.data)
        place = Path(self.data[0])
        if not place.is_dir():
            return [self.data[0]]
        if self.views and any(place.glob(f"*{NDJSON}")):
            return [self.data[0]]  # one export
        if self.views:
            found = [each for each in sorted(place.iterdir()) if each.is_dir() and any(each.glob(f"*{NDJSON}"))]
        else:
            known = {f".{ending}" for ending in (*READERS.names(), *TEXT_ENDINGS)}
            found = [each for each in sorted(place.iterdir()) if each.is_file() and each.suffix.lower() in known]
            found = [each for each in found if not each.name.startswith((".", "~$"))]  # locks of open spreadsheets
        if not found:
            raise DataError(f"The folder {place} holds no tables; put one file per node into it (CSV, Excel, Parquet).")
        return [str(each) for each in found]

    # ---- reading --------------------------------------------------------------------------------

    def load(self) -> Table:
        """The whole table, the parts of all nodes one after the other."""
        return self.load_with_dialect()[0]

    def load_with_dialect(self) -> tuple[Table, Dialect | None]:
        """The whole table, and the dialect of a CSV file."""
        if self.is_named:
            return load(self.data[0]), None
        frame, dialect, _ = self._read()
        return Table.from_frame(frame, self._schema(frame), missing=self.missing), dialect

    def load_by(self, schema: Schema, *, missing: MissingPolicy = "error") -> Table:
        """The whole table by a schema that is known already, such as that of a manifest."""
        frames, _ = self._frames(schema)
        return Table.from_frame(self._stacked(frames, schema), schema, missing=missing)

    def read_frame(self) -> tuple[pd.DataFrame, Dialect | None]:
        """All columns as they are found, for whoever has no schema yet."""
        frames, dialect = self._frames(None)
        return self._stacked(frames, None), dialect

    def parts(self) -> tuple[IndexArray, ...]:
        """The rows of every node, where the source lies in parts."""
        ends = np.cumsum([0, *self._read()[2]])
        return tuple(np.arange(low, high) for low, high in pairwise(ends))

    def column(self, name: str) -> pd.Series[Any]:
        """A column as it is in the files, also one that a table drops: to divide rows by it, never to publish it."""
        frame, _, _ = self._read()
        return frame[name]

    def person_ids(self, schema: Schema) -> pd.Series[Any]:
        """Whose row each is, which a table keeps as numbers only: for the ledger of a series, never to publish it."""
        if schema.person_id is None:
            raise ConfigError("The schema names no person_id, and a series of releases is about people.")
        return self._stacked(self._frames(schema)[0], schema)[schema.person_id]

    def provenance(self, table: Table) -> dict[str, Any]:
        """What a result says of its data: hashes of the files, of the rows with their schema, and of the schema."""
        places = [Path(each) for each in self._places() if not is_database(each)]
        files = [file for each in places for file in (sorted(each.glob(f"*{NDJSON}")) if each.is_dir() else [each])]
        names = [file.name for file in files]
        unique = [name if names.count(name) == 1 else f"{i}: {name}" for i, name in enumerate(names)]
        return {
            "name": self.name,
            "rows": len(table),
            "files": {name: file_sha256(file) for name, file in zip(unique, files, strict=True)},
            **({"query_sha256": hashlib.sha256(self.query.encode()).hexdigest()} if self.query else {}),
            "data_sha256": table.sha256,
            "schema_sha256": table.schema.sha256,
        }

    def _schema(self, frame: pd.DataFrame) -> Schema:
        from fedanon.data.infer import numeric_schema

        declared = self._declared()
        if declared is not None:
            return declared
        return numeric_schema(frame, "all" if self.quasi == "all" else [n.strip() for n in self.quasi.split(",")])

    def _declared(self) -> Schema | None:
        if bool(self.schema) == bool(self.quasi):
            raise ConfigError("Give either --schema FILE or --qi COLUMNS. `fedanon schema infer` proposes a schema.")
        if not self.schema:
            return None
        schema = Schema.read(self.schema)
        return schema.with_key(read_person_key(Path(self.key))) if self.key else schema

    def _read(self) -> tuple[pd.DataFrame, Dialect | None, list[int]]:
        """All rows, the dialect of the first file, and the number of rows of every part."""
        schema = self._declared()
        frames, dialect = self._frames(schema)
        return self._stacked(frames, schema), dialect, [len(frame) for frame in frames]

    def _stacked(self, frames: Sequence[pd.DataFrame], schema: Schema | None) -> pd.DataFrame:
        """The rows of all parts; refused where their columns differ."""
        first, *others = frames
        labels = ["a database" if is_database(each) else Path(each).name for each in self._places()]
        for frame, label in zip(others, labels[1:], strict=True):
            absent, extra = set(first.columns) - set(frame.columns), set(frame.columns) - set(first.columns)
            if absent or extra:
                # where a header was forgotten the names are cells; those of the schema are none
                known = ", ".join(sorted((absent | extra) & set(schema.names if schema else ()))[:5])
                raise SchemaError(
                    f"The files have different columns: {label} lacks {len(absent)} columns of {labels[0]} and has "
                    f"{len(extra)} others{f' ({known})' if known else ''}. Give the files of all nodes "
                    "the same columns, or name the files to be read."
                )
        return first if not others else pd.concat([frame[list(first.columns)] for frame in frames], ignore_index=True)

    def _frames(self, schema: Schema | None) -> tuple[list[pd.DataFrame], Dialect | None]:
        found = [self._part(place, schema) for place in self._places()]
        return [frame for frame, _ in found], found[0][1]

    def _part(self, place: str, schema: Schema | None) -> tuple[pd.DataFrame, Dialect | None]:
        """One of several places; what does not fit the schema is said with the name of the file."""
        try:
            return self._frame(place, schema)
        except SchemaError as error:
            if is_database(place) or not self.has_parts:
                raise
            raise SchemaError(f"{Path(place).name}: {error}") from None

    def _frame(self, place: str, schema: Schema | None) -> tuple[pd.DataFrame, Dialect | None]:
        if is_database(place):
            return read_query(place, self.query, schema), None
        path = Path(place)
        if path.is_dir() and self.views:
            return read_ndjson(path, schema, self.encoding, views=self.views), None
        options = {"header": self.header, "sheet": self.sheet, "views": self.views}
        if format_of(path) == "csv" and not self.sheet and not self.views:
            how = {"separator": self.separator or None, "decimal": self.decimal or None}
            frame, dialect = read_with_dialect(path, schema, self.encoding, header=self.header is not False, **how)
        elif self.separator or self.decimal:
            raise ConfigError(f"The file {path.name} is no CSV file: it is read without a separator or a decimal mark.")
        else:
            frame, dialect = read_file(path, schema, encoding=self.encoding, **options), None
        if schema is None and self.header is None and format_of(path) in HEADED and lacks_header(frame):
            raise DataError(
                f"The first line of {path.name} looks like a record, not like the names of the columns. Say "
                "--no-header if the file has no header line (the columns are then called c1, c2, ...), or --header if "
                "it has one."
            )
        return frame, dialect


def locate(place: str, base: Path) -> str:
    """A file or the address of a database, wherever it is read from; a relative name counts from ``base``."""
    file = database_file(place) if is_database(place) else Path(place)
    if file is None:
        return place
    return f"{place.split('://')[0]}:///{base / file}" if is_database(place) else str(base / file)
