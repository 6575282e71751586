"""A release on disk: a CSV, Excel, Parquet or NDJSON file and beside it a manifest that says how it came about.

The manifest is for the steward, not for the public: with the seed, random noise could be drawn again and taken off.
There is no clock in either file. The rows are in random order unless their order is kept.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.hierarchy import MISSING, ROOT
from fedanon.data.schema import Numeric, Schema, type_name
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table, texts
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.io.atomic import atomic_file, atomic_write
from fedanon.io.csv import read_frame
from fedanon.io.dialect import ALL_QUOTED, AUTO, Dialect, has_comma_cells, with_commas, with_points
from fedanon.io.excel import read_excel, write_excel
from fedanon.io.fhir_release import read_resources, write_resources
from fedanon.io.formula_guard import guarded, unguarded
from fedanon.io.manifest import Manifest
from fedanon.io.outputs import manifest_path as manifest_path
from fedanon.io.outputs import release_kind
from fedanon.io.parquet import batches, column_types, is_parquet, plain_columns, read_columns, write_frame
from fedanon.io.row_order import random_order, write_row_key
from fedanon.release.gate import verify
from fedanon.release.release import Release
from fedanon.release.view import FileView
from fedanon.types import IndexArray

NO_CLAIM = "Nothing is promised about this table."
#: all columns of a release that can be held
ALL: tuple[str, ...] = ("*",)
AUDIENCE = "Keep this file with the data steward: with the seed, a reader could undo what was random."


# ---- writing -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """How a release becomes a file.

    Parameters
    ----------
    dialect : of a CSV file.
    found : the dialect of the CSV file the table was read from, so that the manifest can say what differs.
    formula_guard : whether text that a spreadsheet would run gets an apostrophe in front, in a CSV or Excel file.
    keep_order : whether the rows are in the order of the table, which may say who is who; else it is random.
    row_key : where to write which original row every released row shows, for the steward alone.
    order : this order of the rows, instead of a random one.
    announce : called with the text of the manifest before the file takes its name, by a ledger that must know first.
    with_schema : whether the manifest holds the schema, without the values of columns that are dropped or passed
        through; not where its ranges were read off the data.
    """

    dialect: Dialect = Dialect()
    found: Dialect | None = None
    formula_guard: bool = True
    keep_order: bool = False
    row_key: Path | None = None
    order: IndexArray | None = None
    with_schema: bool = True
    announce: Callable[[str], None] | None = None

    def order_of(self, release: Release) -> IndexArray | None:
        """The order of the rows that are written; None keeps that of the release."""
        if self.row_key is not None and release.in_group_order:
            raise ConfigError("The method publishes rows group by group, which show no record: there is no row key.")
        if self.keep_order:
            return None
        return random_order(len(release)) if self.order is None else self.order


class ColumnSource(Protocol):
    """A file larger than memory, whose columns that are not quasi-identifiers pass by while a release is written."""

    def write_published(self, release: Release, file: BinaryIO, order: IndexArray | None) -> None:
        """Write the published rows, with the columns of the source beside the cells of the release."""

    def widened(self, release: Release, table: Table) -> Release:
        """The release of ``table`` with the schema of all columns, which the manifest describes."""


def write_release(
    release: Release,
    table: Table,
    path: str | Path,
    *,
    form: FileForm | None = None,
    source: ColumnSource | None = None,
    overwrite: bool = False,
) -> Path:
    """Verify ``release`` once more, then write it to ``path`` and its manifest to ``<path>.manifest.json``.

    Parameters
    ----------
    release : what is published.
    table : what it was made from.
    path : the file; Parquet, Excel or FHIR resources by its ending (.parquet, .xlsx, .ndjson), else CSV.
    form : how it is written; by default as UTF-8 with commas, its rows in random order.
    source : where ``table`` was read from, if it holds only some of the columns.
    overwrite : whether a file that exists, or a manifest beside it, may be replaced; else ConfigError.

    Returns
    -------
    The path of the file. A manifest beside it means that both were written whole.
    """
    path, form = Path(path), form or FileForm()
    there = next((each for each in (path, manifest_path(path)) if os.path.lexists(each)), None)
    if there is not None and not overwrite:
        raise ConfigError(f"The output {there} exists; overwrite=True replaces it.")
    table.refuse_without_key()
    verify(release, table)
    kind = release_kind(path)
    order, changes = form.order_of(release), list[dict[str, Any]]()
    with atomic_file(path) as file:
        if source is not None:
            source.write_published(release, file, order)
        else:
            changes = _write_frame(file, _ordered(release, order), release.schema, form, kind)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        described = release if source is None else source.widened(release, table)
        document = {**manifest(described, table), **_written(release, form, kind), "changes": changes}
        text = _manifest_text({**document, f"{kind}_sha256": digest}, described.schema, form)
        _forget(manifest_path(path))
        if form.row_key is not None:
            write_row_key(form.row_key, np.arange(len(release)) if order is None else order, digest)
        if form.announce is not None:
            form.announce(text)
    atomic_write(manifest_path(path), text)
    return path


def _ordered(release: Release, order: IndexArray | None) -> pd.DataFrame:
    frame = release.to_frame()
    return frame if order is None else frame.iloc[order]


def _written(release: Release, form: FileForm, kind: str) -> dict[str, Any]:
    """How the file is written, which reading it needs to know."""
    kept = "grouped" if release.in_group_order else "kept"
    facts: dict[str, Any] = {"row_order": kept if form.keep_order else "shuffled"}
    if kind in ("csv", "xlsx"):
        facts["formula_guard"] = form.formula_guard
    return facts | ({"dialect": form.dialect.to_dict()} if kind == "csv" else {})


def _manifest_text(document: dict[str, Any], schema: Schema, form: FileForm) -> str:
    if form.with_schema:
        # as text, since the order of columns and values has a meaning and the keys of a manifest are sorted
        known = schema.without_values()
        document = {**document, "schema": schema_toml(known), "schema_held_sha256": known.sha256}
    return json.dumps(document, indent=2, sort_keys=True, default=_plain) + "\n"


def manifest(release: Release, table: Table) -> dict[str, Any]:
    """What is known about a release: origin, claim, size, columns and hashes; no cell."""
    claim = release.claim
    return {
        "audience": AUDIENCE,
        "provenance": release.provenance.to_dict(),
        "claim": None if claim is None else claim.to_dict(),
        "claim_text": release.promise or NO_CLAIM,
        "counted": release.schema.unit,
        "rows": len(release),
        "suppressed": int(release.suppressed.sum()),
        "classes": release.classes.count,
        "smallest_class": release.smallest_class,
        "columnwise": release.recoding.columnwise,
        "missing": table.missing,
        "columns": [{"name": a.name, "role": str(a.role), "type": type_name(a)} for a in release.schema.attributes],
        "schema_sha256": release.schema.sha256,
        **({"key_fingerprint": table.key_fingerprint} if table.key_fingerprint else {}),
    }


def _write_frame(
    file: BinaryIO, frame: pd.DataFrame, schema: Schema, form: FileForm, kind: str
) -> list[dict[str, Any]]:
    """Write the published rows in a format; returns what was changed in them that the method did not change."""
    if kind == "parquet":
        write_frame(file, frame)
    elif kind == "ndjson":
        write_resources(file, frame, schema)
    elif kind == "xlsx":
        guarded_frame, changes = _guarded(frame, form, ".")
        write_excel(file, guarded_frame)
        return changes
    else:
        data, changes = _csv_bytes(frame, schema, form)
        file.write(data)
        return changes
    return []


def _guarded(frame: pd.DataFrame, form: FileForm, decimal: str) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The rows made harmless to a spreadsheet, if that is wanted, and what was changed."""
    if not form.formula_guard:
        return frame, []
    frame, cells, names = guarded(frame, decimal)
    return frame, [{"kind": "formula guard", "cells": cells, "names": names}] if cells or names else []


def _csv_bytes(frame: pd.DataFrame, schema: Schema, form: FileForm) -> tuple[bytes, list[dict[str, Any]]]:
    """The file, and what was changed in it that the method did not change."""
    dialect, changes = form.dialect, list[dict[str, Any]](form.dialect.changes_from(form.found))
    if dialect.decimal == ",":
        frame = frame.copy()
        for i, name in enumerate(frame.columns):
            if isinstance(schema[name], Numeric) or pd.api.types.is_float_dtype(frame[name]):
                frame.isetitem(i, with_commas(frame[name].astype(object)).to_numpy(dtype=object))
    frame, guard = _guarded(frame, form, dialect.decimal)
    try:
        return _csv_text(frame, dialect).encode(dialect.encoding), [*changes, *guard]
    except UnicodeEncodeError:
        raise DataError(
            f"The release has characters that {dialect.encoding} does not have; choose another encoding for the "
            "output, such as --encoding-out utf-8."
        ) from None


def _csv_text(frame: pd.DataFrame, dialect: Dialect) -> str:
    quoting: Any = csv.QUOTE_ALL if dialect.quoting == ALL_QUOTED else csv.QUOTE_MINIMAL
    text = frame.to_csv(index=False, sep=dialect.separator, lineterminator=dialect.line_end, quoting=quoting)
    # the writer leaves a carriage return bare, which readers take for the end of a line
    if "\r" in text.replace("\r\n", "") or (dialect.line_end == "\n" and "\r" in text):
        return frame.to_csv(index=False, sep=dialect.separator, lineterminator=dialect.line_end, quoting=csv.QUOTE_ALL)
    return text


def _plain(value: Any) -> Any:
    """A numpy scalar as a number, anything else as text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _forget(path: Path) -> None:
    """Remove the manifest of an older release, so that it is never beside a table it does not describe."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"The file {path} cannot be replaced: {error.strerror}.") from None


# ---- reading -------------------------------------------------------------------------------------


def read_release(
    path: str | Path, schema: Schema, *, also: Collection[str] = (), manifest: Manifest | None = None
) -> FileView:
    """Read a release from its file as its manifest says it was written; without one, as it is found.

    Parameters
    ----------
    path : the file; of a Parquet file (by its name) only the quasi-identifiers and the columns ``also`` are held.
    schema : of the original table.
    also : see ``path``; ALL holds every column but those of lists or records.
    manifest : of the file, if it does not lie beside it.
    """
    names = tuple(a.name for a in schema.quasi_identifiers)
    columnar = is_parquet(path)
    manifest = manifest or Manifest.beside(Path(path))
    if columnar and also is ALL:
        also = plain_columns(Path(path))
    wanted = {*names, *also, schema.pseudonym or ""}
    frame = _read_parquet(Path(path), schema, wanted) if columnar else _read_texts(Path(path), schema, manifest)
    schema, frame = _with_masked(schema, frame, [] if manifest is None else manifest.masked)
    _refuse_empty(frame, names)
    hidden = _hidden(frame, names)
    blank = _blank_rows(Path(path), schema, hidden) if columnar else frame.drop(columns=list(names)).isna().all(axis=1)
    return FileView.from_texts(schema, frame, hidden & np.asarray(blank, dtype=bool))


def published_texts(path: Path, dialect: Dialect | None) -> pd.DataFrame:
    """All cells of a released file that is not Parquet, as text."""
    kind = release_kind(path)
    if kind == "ndjson":
        return read_resources(path)
    if kind == "xlsx":
        frame = read_excel(path, None, AUTO)
        return pd.DataFrame({name: texts(frame[name]) for name in frame.columns})
    encoding, separator = (AUTO, None) if dialect is None else (dialect.encoding, dialect.separator)
    return read_frame(path, encoding=encoding, separator=separator)


def _with_masked(schema: Schema, frame: pd.DataFrame, masked: Sequence[str]) -> tuple[Schema, pd.DataFrame]:
    """Read columns that were changed, though they are no quasi-identifiers: noise leaves a range, '*' says nothing."""
    quasi = {a.name for a in schema.quasi_identifiers}
    changed = {}
    for name in (name for name in masked if name not in quasi and name in frame):
        frame = frame.assign(**{name: frame[name].mask(frame[name].isin([ROOT, MISSING]))})
        attribute, values = schema[name], pd.to_numeric(frame[name], errors="coerce")
        if isinstance(attribute, Numeric) and values.notna().any():
            low, high = min(attribute.low, float(values.min())), max(attribute.high, float(values.max()))
            changed[name] = replace(attribute, low=low, high=high, integer=False, hierarchy=None, rule=None)
    return schema.replacing(*changed.values()), frame


def _read_texts(path: Path, schema: Schema, manifest: Manifest | None) -> pd.DataFrame:
    dialect = None if manifest is None else manifest.dialect
    frame = published_texts(path, dialect)
    if manifest is not None and manifest.formula_guard:
        frame = unguarded(frame)
    _check_published(list(frame.columns), schema)
    is_open = dialect is None and release_kind(path) == "csv"
    commas = has_comma_cells(frame, schema) if is_open else dialect is not None and dialect.decimal == ","
    return pd.DataFrame(
        {n: with_points(frame[n]) if commas and isinstance(schema[n], Numeric) else frame[n] for n in schema.published}
    )


def _read_parquet(path: Path, schema: Schema, wanted: set[str]) -> pd.DataFrame:
    columns, rows = column_types(path)
    _check_published([name for name, _ in columns], schema)
    names = [name for name in schema.published if name in wanted]
    frame = read_columns(path, names)
    return pd.DataFrame({name: texts(frame[name]) for name in names}, index=pd.RangeIndex(rows))


def _check_published(names: Sequence[str], schema: Schema) -> None:
    absent = [name for name in schema.published if name not in names]
    if absent:
        raise SchemaError(f"The release lacks {len(absent)} columns of the schema: {', '.join(absent[:10])}.")
    leaked = [name for name in schema.identifying if name in names and name != schema.pseudonym]
    if leaked:
        raise SchemaError(f"The file holds identifying columns, so it is no release: {', '.join(leaked[:10])}.")
    extra = len(names) - len(schema.published)
    if extra:
        raise SchemaError(f"The release has {extra} columns that the schema does not declare.")


def _refuse_empty(frame: pd.DataFrame, names: tuple[str, ...]) -> None:
    for name in names:
        empty = int(frame[name].isna().sum())
        if empty:
            raise DataError(f"The quasi-identifier {name!r} of the release has {empty} empty cells.")


def _hidden(frame: pd.DataFrame, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Rows with '*' in every quasi-identifier."""
    if not names:
        return np.zeros(len(frame), dtype=bool)
    return np.asarray((frame[list(names)] == ROOT).all(axis=1), dtype=bool)


def _blank_rows(path: Path, schema: Schema, hidden: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows of a Parquet file whose other columns are empty; the file is read for it only if any row is hidden."""
    quasi = {a.name for a in schema.quasi_identifiers}
    others = [name for name in schema.published if name not in quasi]
    if not others or not hidden.any():
        return hidden
    parts = batches(path, others)
    return np.concatenate([np.all([c.is_null().to_numpy(False) for c in part.columns], axis=0) for part in parts])
