"""A release on disk: a CSV or Parquet file and beside it a manifest that says how it came about.

The manifest is for the steward, not for the public: with the seed, random noise could be drawn again and taken off.
Both files are a function of the release alone (no clock), so the same input and seed give the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.hierarchy import ROOT
from fedanon.data.schema import Schema, type_name
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table, texts
from fedanon.errors import DataError, SchemaError
from fedanon.io.atomic import atomic_file, atomic_write
from fedanon.io.csv import read_frame
from fedanon.io.outputs import manifest_path as manifest_path
from fedanon.io.parquet import batches, column_types, is_parquet, read_columns, write_frame
from fedanon.release.gate import verify
from fedanon.release.release import Release
from fedanon.release.view import FileView

NO_CLAIM = "Nothing is promised about this table."
AUDIENCE = "Keep this file with the data steward: with the seed, a reader could undo what was random."


# ---- writing -------------------------------------------------------------------------------------


class ColumnSource(Protocol):
    """A file larger than memory, whose columns that are not quasi-identifiers pass by while a release is written."""

    def write_published(self, release: Release, file: BinaryIO) -> None:
        """Write the published rows, with the columns of the source beside the cells of the release."""

    def widened(self, release: Release) -> Release:
        """The release with the schema of all columns, which the manifest describes."""


def write_release(
    release: Release,
    table: Table,
    path: str | Path,
    *,
    with_schema: bool = True,
    source: ColumnSource | None = None,
) -> Path:
    """Verify ``release`` once more, then write it to ``path`` and its manifest to ``<path>.manifest.json``.

    Parameters
    ----------
    release : what is published.
    table : what it was made from.
    path : the file; Parquet if its name ends in .parquet, else CSV. An older one is replaced.
    with_schema : whether the manifest holds the schema, without the values of columns that are dropped or passed
        through; not where its ranges were read off the data.
    source : where ``table`` was read from, if it holds only some of the columns.

    Returns
    -------
    The path of the file. A manifest beside it means that both were written whole.
    """
    path = Path(path)
    verify(release, table)
    kind = "parquet" if is_parquet(path) else "csv"
    with atomic_file(path) as file:
        if source is not None:
            source.write_published(release, file)
        elif kind == "parquet":
            write_frame(file, release.to_frame())
        else:
            file.write(_csv_text(release.to_frame()).encode())
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        described = release if source is None else source.widened(release)
        text = manifest_text(described, table, digest, kind, with_schema=with_schema)
        _forget(manifest_path(path))
    atomic_write(manifest_path(path), text)
    return path


def manifest_text(release: Release, table: Table, digest: str, kind: str, *, with_schema: bool = True) -> str:
    """The manifest of a release whose file of this ``kind`` (csv, parquet) has the SHA-256 ``digest``."""
    document = {**manifest(release, table), f"{kind}_sha256": digest}
    if with_schema:
        # as text, since the order of columns and values has a meaning and the keys of a manifest are sorted
        known = release.schema.without_values()
        document |= {"schema": schema_toml(known), "schema_held_sha256": known.sha256}
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
    }


def _csv_text(frame: pd.DataFrame) -> str:
    guarded = frame.rename(columns=guard)
    for i, name in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name]):
            texts = frame[name].map(lambda cell: guard(str(cell)), na_action="ignore")
            guarded.isetitem(i, texts.to_numpy(dtype=object))
    text = guarded.to_csv(index=False, lineterminator="\n")
    # the writer leaves a carriage return bare, which readers take for the end of a line
    return guarded.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_ALL) if "\r" in text else text


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


def read_release(path: str | Path, schema: Schema, *, also: Collection[str] = ()) -> FileView:
    """Read a release from its file; ``schema`` is that of the original table.

    Of a Parquet file (by its name) only the quasi-identifiers and the columns ``also`` are held.
    """
    names = tuple(a.name for a in schema.quasi_identifiers)
    columnar = is_parquet(path)
    frame = _read_parquet(Path(path), schema, {*names, *also}) if columnar else _read_csv(path, schema)
    _refuse_empty(frame, names)
    hidden = _hidden(frame, names)
    blank = _blank_rows(Path(path), schema, hidden) if columnar else frame.drop(columns=list(names)).isna().all(axis=1)
    return FileView.from_texts(schema, frame, hidden & np.asarray(blank, dtype=bool))


def _read_csv(path: str | Path, schema: Schema) -> pd.DataFrame:
    frame = read_frame(path, separator=",")
    frame.columns = pd.Index([unguard(name) for name in frame.columns])
    _check_published(list(frame.columns), schema)
    return pd.DataFrame({name: frame[name].map(unguard, na_action="ignore") for name in schema.published})


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
    leaked = [name for name in schema.identifying if name in names]
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


# ---- Text that a spreadsheet would run as a formula ----------------------------------------------

TRIGGERS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def guard(text: str) -> str:
    """``text``, made harmless to a spreadsheet.

    Text that already looks guarded gets one more apostrophe, so that :func:`unguard` is the exact inverse.
    """
    return "'" + text if text.lstrip("'").startswith(TRIGGERS) and not _NUMBER.fullmatch(text) else text


def unguard(text: str) -> str:
    """Inverse of :func:`guard`."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(TRIGGERS) else text
