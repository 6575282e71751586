"""A Parquet file larger than memory: only the quasi-identifiers are held, the other columns pass by in batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from fedanon.data.cells import cell_texts
from fedanon.data.columns import is_recoded
from fedanon.data.hierarchy import ROOT
from fedanon.data.readers import READERS
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema, type_name
from fedanon.data.table import MissingPolicy, Table, check_columns, check_people, check_values
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.io.parquet import (
    batches,
    column_types,
    hidden,
    is_number,
    is_text,
    pyarrow,
    read_columns,
    read_frame,
    record_batch,
    reordered,
    write_batches,
)
from fedanon.release.release import Release
from fedanon.types import IndexArray


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file whose columns are those of a schema; build it with :meth:`open`.

    Parameters
    ----------
    path : the file.
    schema : of all its columns.
    state : size and time of the last change of the file when it was opened.
    """

    path: Path
    schema: Schema
    state: tuple[int, int]

    @classmethod
    def open(cls, path: str | Path, schema: Schema) -> ParquetSource:
        """Check names and types of the columns; no value is read.

        Raises
        ------
        DataError
            If the file is absent, damaged or no Parquet file, or has no rows.
        SchemaError
            If its columns are not those of ``schema``.
        """
        path = Path(path)
        columns, rows = column_types(path)
        check_columns([name for name, _ in columns], rows, schema)
        _check_types(dict(columns), schema)
        return cls(path, schema, _state(path))

    def table(self, *, missing: MissingPolicy = "error", also: Collection[str] = ()) -> Table:
        """The quasi-identifiers, and the columns of persons, weights and households, as a table of their own.

        Its schema declares no other columns. ``also`` names more to read, such as one a privacy model is about.
        """
        self.schema.refuse_undecided()
        narrow = self._narrow({a.name for a in self.schema.quasi_identifiers}.union(also))
        self._check_others(narrow)
        return Table.from_frame(self.frame(narrow), narrow, missing=missing)

    def _check_others(self, narrow: Schema) -> None:
        """Check the columns that are not held as those that are, one at a time."""
        check_people((self._column(self.schema[name]) for name in self.schema.naming), self.schema)
        for attribute in self.schema.attributes:
            if attribute.name not in narrow.names and not isinstance(attribute, FreeText):
                check_values(self._column(attribute), attribute, self.schema)

    def _column(self, attribute: Attribute) -> pd.Series[Any]:
        return self.frame(Schema((attribute,)))[attribute.name]

    @property
    def passes_columns(self) -> bool:
        """Whether the columns that are carried along are published as they are in the file."""
        return not self.schema.needs_key and not any(
            is_recoded(a) for a in self.schema.attributes if a.role is not Role.QUASI_IDENTIFYING
        )

    def frame(self, schema: Schema) -> pd.DataFrame:
        """The columns of ``schema``, which declares some of the file's."""
        categories = {a.name for a in schema.attributes if isinstance(a, Categorical)}
        return read_columns(self.path, schema.names, categories=categories, tokens=self.schema.missing_values)

    def write_published(self, release: Release, file: BinaryIO, order: IndexArray | None) -> None:
        """Write a release of :meth:`table` to a Parquet file; see :func:`fedanon.io.release_file.write_release`.

        Quasi-identifiers are texts as in :meth:`Release.to_frame`; other columns keep their types.
        """
        if not self.passes_columns:
            raise ConfigError("Columns that a key or a rule changes cannot pass by; read the whole file instead.")
        if release.in_group_order:
            raise ConfigError("Rows in another order cannot have other columns pass by them; use a CSV file.")
        parts = self._published(release)
        write_batches(file, parts if order is None else reordered(parts, order, Path(file.name).parent))
        if _state(self.path) != self.state:
            raise DataError(f"The file {self.path.name} was changed after it had been read; nothing was written.")

    def widened(self, release: Release, table: Table) -> Release:
        """The release of ``table`` with the schema of all columns, which the manifest describes."""
        schema = self.schema.replacing(*release.schema.quasi_identifiers)
        data = table.hash_with(schema.sha256)
        provenance = replace(release.provenance, schema_sha256=schema.sha256, data_sha256=data)
        return replace(release, schema=schema, provenance=provenance)

    def _narrow(self, wanted: set[str]) -> Schema:
        """The schema of some columns and of those a table always needs."""
        schema = self.schema
        held = wanted | {schema.person_id or "", schema.weight or "", schema.household or ""}
        kept = tuple(a for a in schema.attributes if a.name in held)
        return replace(schema, attributes=kept, target=schema.target if schema.target in held else None)

    def _published(self, release: Release) -> Iterator[Any]:
        """The published rows in batches."""
        texts = _texts(release)
        suppressed = release.suppressed
        cell = np.where(suppressed, release.groups.count, release.groups.labels)
        others = [name for name in self.schema.published if name not in texts]
        begin = 0
        # a table of quasi-identifiers alone is read for its number of rows
        for batch in batches(self.path, others or list(texts)[:1]):
            rows = slice(begin, begin := begin + len(batch))
            shown = {name: text.take(pyarrow().array(cell[rows])) for name, text in texts.items()}
            shown |= {name: hidden(batch.column(name), suppressed[rows]) for name in others}
            yield record_batch({name: shown[name] for name in self.schema.published})


@READERS.register("parquet")
def read_parquet(path: Path, schema: Schema | None, encoding: str) -> pd.DataFrame:  # noqa: ARG001  no text file
    """The declared columns of a Parquet file, or all; see :func:`fedanon.data.readers.read_table`."""
    return read_frame(path) if schema is None else ParquetSource.open(path, schema).frame(schema)


def _texts(release: Release) -> Mapping[str, Any]:
    """For every quasi-identifier the text of each cell, and that of a suppressed row last."""
    arrow = pyarrow()
    texts = {name: cell_texts(cells, release.schema[name]) for name, cells in release.cells.items()}
    return {name: arrow.array(np.append(text, ROOT), arrow.string()) for name, text in texts.items()}


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _check_types(types: Mapping[str, Any], schema: Schema) -> None:
    """Dates would become numbers, and lists texts, without a word."""
    for attribute in (*schema.quasi_identifiers, *([schema[schema.weight]] if schema.weight else [])):
        kind = types[attribute.name]
        if is_text(kind) or is_number(kind):
            continue
        if type_name(attribute) == "date" and (pyarrow().types.is_date(kind) or pyarrow().types.is_timestamp(kind)):
            continue
        if isinstance(attribute, Numeric) or pyarrow().types.is_nested(kind):
            wanted = "numbers" if isinstance(attribute, Numeric) else "values of a taxonomy"
            raise SchemaError(f"The column {attribute.name!r} has the Parquet type {kind}, which holds no {wanted}.")
