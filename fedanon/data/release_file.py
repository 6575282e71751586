"""A release on disk: a CSV file and beside it a manifest that says how it came about.

The manifest is for the steward, not for the public: with the seed, random noise could be drawn again and taken off.
Both files are a function of the release alone (no clock), so the same input and seed give the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.atomic import atomic_write
from fedanon.data.csv_file import read_frame
from fedanon.data.formula_guard import guard, unguard
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import ROOT
from fedanon.data.release import Release
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import DataError, PrivacyViolationError, SchemaError

NO_CLAIM = "Nothing is promised about this table."
AUDIENCE = "Keep this file with the data steward: with the seed, a reader could undo what was random."


# ---- writing ------------------------------------------------------------------------------------


def write_release(release: Release, table: Table, path: str | Path) -> Path:
    """Verify ``release`` once more, then write it to ``path`` and its manifest to ``<path>.manifest.json``.

    Parameters
    ----------
    release : what is published.
    table : what it was made from.
    path : the CSV file; an older one is replaced.

    Returns
    -------
    The path of the CSV file. A manifest beside it means that both were written whole.
    """
    path = Path(path)
    _verify(release, table)
    data = _csv_text(release.to_frame()).encode()
    document = manifest(release, table, hashlib.sha256(data).hexdigest())
    text = json.dumps(document, indent=2, sort_keys=True, default=_plain) + "\n"
    _forget(manifest_path(path))
    atomic_write(path, data)
    atomic_write(manifest_path(path), text)
    return path


def manifest_path(path: str | Path) -> Path:
    """Where the manifest of the release at ``path`` lies."""
    return Path(f"{path}.manifest.json")


def manifest(release: Release, table: Table, csv_sha256: str) -> dict[str, Any]:
    """What is known about a release: origin, claim, size, columns and hashes; no cell."""
    classes = release.classes
    people = classes.sizes if table.persons is None else classes.distinct(table.persons)
    claim = release.claim
    return {
        "audience": AUDIENCE,
        "provenance": release.provenance.to_dict(),
        "claim": None if claim is None else claim.to_dict(),
        "claim_text": NO_CLAIM if claim is None else claim.describe(),
        "rows": len(release),
        "suppressed": int(release.suppressed.sum()),
        "classes": classes.count,
        "smallest_class": int(people.min()) if classes.count else 0,
        "missing": table.missing,
        "columns": [{"name": a.name, "role": str(a.role)} for a in release.schema.attributes],
        "schema_sha256": release.schema.sha256,
        "csv_sha256": csv_sha256,
    }


def _verify(release: Release, table: Table) -> None:
    if len(release) != len(table):
        raise PrivacyViolationError(f"The release has {len(release)} rows, its table {len(table)}.")
    if release.claim is not None:
        release.claim.check(release, table)


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


# ---- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReleasedFrame:
    """A release as anyone can read it: text, and what follows from it.

    Parameters
    ----------
    frame : the published columns as text; an empty cell is missing.
    quasi_identifiers : names of the quasi-identifying columns.
    suppressed : which rows publish nothing.
    classes : rows with equal quasi-identifiers.
    """

    frame: pd.DataFrame
    quasi_identifiers: tuple[str, ...]
    suppressed: NDArray[np.bool_]
    classes: Groups

    def __len__(self) -> int:
        return len(self.frame)


def read_release(path: str | Path, schema: Schema) -> ReleasedFrame:
    """Read a release from its CSV file; ``schema`` is that of the original table."""
    frame = read_frame(path, separator=",")
    frame.columns = pd.Index([unguard(name) for name in frame.columns])
    _check_published(frame, schema)
    frame = frame[schema.published].apply(lambda column: column.map(unguard, na_action="ignore"))
    names = tuple(a.name for a in schema.quasi_identifiers)
    _refuse_empty(frame, names)
    suppressed = _suppressed(frame, names)
    codes = [pd.factorize(frame[name], sort=True)[0] for name in names]
    equal = Groups.equal_rows(np.column_stack(codes) if codes else np.empty((len(frame), 0)))
    return ReleasedFrame(frame, names, suppressed, Groups.of(np.where(suppressed, -1, equal.labels)))


def _check_published(frame: pd.DataFrame, schema: Schema) -> None:
    absent = [name for name in schema.published if name not in frame]
    if absent:
        raise SchemaError(f"The release lacks {len(absent)} columns of the schema: {', '.join(absent[:10])}.")
    leaked = [name for name in schema.identifying if name in frame]
    if leaked:
        raise SchemaError(f"The file holds identifying columns, so it is no release: {', '.join(leaked[:10])}.")
    extra = len(frame.columns) - len(schema.published)
    if extra:
        raise SchemaError(f"The release has {extra} columns that the schema does not declare.")


def _refuse_empty(frame: pd.DataFrame, names: tuple[str, ...]) -> None:
    for name in names:
        empty = int(frame[name].isna().sum())
        if empty:
            raise DataError(f"The quasi-identifier {name!r} of the release has {empty} empty cells.")


def _suppressed(frame: pd.DataFrame, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Rows with '*' in every quasi-identifier and nothing else."""
    if not names:
        return np.zeros(len(frame), dtype=bool)
    quasi = frame[list(names)]
    rest = frame.drop(columns=list(names))
    return np.asarray((quasi == ROOT).all(axis=1) & rest.isna().all(axis=1), dtype=bool)
