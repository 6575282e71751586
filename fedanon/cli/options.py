"""Options several commands share, and how a table is found from them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.data.schema import Schema
    from fedanon.data.table import Table
    from fedanon.io.parquet_source import ParquetSource

InputFile = Annotated[Path | None, typer.Argument(metavar="INPUT", help="CSV file with a header line, or .parquet.")]
Dataset = Annotated[str | None, typer.Option(help="A data set by name instead of a file; see `fedanon data list`.")]
Client = Annotated[int | None, typer.Option(help="One client of a data set that is stored in partitions.", min=0)]
SchemaFile = Annotated[Path | None, typer.Option("--schema", help="Schema of the file (TOML).")]
Quasi = Annotated[
    str | None, typer.Option("--qi", help="Numeric columns a,b,c (or `all`) as quasi-identifiers, instead of a schema.")
]
Missing = Annotated[
    str | None,
    typer.Option(help="Missing quasi-identifiers: error (default), category (a value of its own), wildcard."),
]
Encoding = Annotated[str, typer.Option(help="Encoding of the file.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be repeated.")
]
Seed = Annotated[int, typer.Option(help="Seed of all randomness.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def load_table(
    *,
    file: Path | None,
    dataset: str | None,
    client: int | None = None,
    schema: Path | None = None,
    quasi: str | None = None,
    missing: str | None = None,
    encoding: str = "utf-8",
    also: Collection[str] | None = None,
) -> Table:
    """The table a command works on: a file with a schema or chosen columns, or a data set by name.

    ``also`` names the columns that are needed besides the quasi-identifiers; None takes all. Only a Parquet file is
    read by columns.
    """
    if (file is None) == (dataset is None):
        raise ConfigError("Give either an input file or --dataset NAME.")
    if dataset is not None:
        return _load_dataset(dataset, client, schema, quasi, missing)
    if client is not None:
        raise ConfigError("--client goes with --dataset.")
    assert file is not None
    return _load_file(file, schema, quasi, missing or "error", encoding, also)


def _load_dataset(name: str, client: int | None, schema: Path | None, quasi: str | None, missing: str | None) -> Table:
    from fedanon.datasets import load

    given = [option for option, value in (("--schema", schema), ("--qi", quasi), ("--missing", missing)) if value]
    if given:
        raise ConfigError(f"{', '.join(given)} goes with an input file; a data set brings its own schema.")
    return load(name, node=client)


def _load_file(
    file: Path, schema: Path | None, quasi: str | None, missing: Any, encoding: str, also: Collection[str] | None
) -> Table:
    from fedanon.data.table import Table
    from fedanon.io.csv import read_frame
    from fedanon.io.parquet import is_parquet

    if is_parquet(file):
        source = parquet_source(file, schema, quasi)
        return source.table(missing=missing, also=source.schema.names if also is None else also)
    declared = _declared(schema, quasi)
    frame = read_frame(file, encoding=encoding)
    return Table.from_frame(frame, declared or _all_numeric(frame, quasi), missing=missing)


def read_table(file: Path, schema: Schema, missing: Any, encoding: str) -> Table:
    """A whole file, of either format, by a schema that is at hand."""
    from fedanon.data.table import Table
    from fedanon.io.csv import read_frame
    from fedanon.io.parquet import is_parquet
    from fedanon.io.parquet_source import ParquetSource

    if is_parquet(file):
        return ParquetSource.open(file, schema).table(missing=missing, also=schema.names)
    return Table.from_frame(read_frame(file, encoding=encoding), schema, missing=missing)


def parquet_source(file: Path, schema: Path | None, quasi: str | None) -> ParquetSource:
    """A Parquet file with its schema or chosen columns; what is read of it is for the caller to say."""
    from fedanon.io.parquet import read_frame
    from fedanon.io.parquet_source import ParquetSource

    return ParquetSource.open(file, _declared(schema, quasi) or _all_numeric(read_frame(file), quasi))


def _declared(schema: Path | None, quasi: str | None) -> Schema | None:
    from fedanon.data.schema import Schema

    if (schema is None) == (quasi is None):
        raise ConfigError("Give either --schema FILE or --qi COLUMNS. `fedanon schema infer` proposes a schema.")
    return None if schema is None else Schema.read(schema)


def _all_numeric(frame: pd.DataFrame, quasi: str | None) -> Schema:
    from fedanon.data.infer import numeric_schema

    assert quasi is not None
    return numeric_schema(frame, "all" if quasi == "all" else [name.strip() for name in quasi.split(",")])


def parse_settings(settings: list[str] | None) -> dict[str, str]:
    """``name=value`` texts as a mapping."""
    pairs = {}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set takes NAME=VALUE; {name!r} has no '='.")
        pairs[name.strip()] = value.strip()
    return pairs
