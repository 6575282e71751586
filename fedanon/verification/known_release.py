"""A released file beside its original: how rows in random order are matched, and what is known from the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.table import Table, texts
from fedanon.errors import ConfigError, DataError, FedanonError
from fedanon.fields import build
from fedanon.io.manifest import Manifest
from fedanon.io.parquet import read_columns
from fedanon.io.release_file import ALL, read_release
from fedanon.metrics.row_matching import match_rows
from fedanon.release.reconstruction import reconstruct
from fedanon.release.release import Release
from fedanon.release.view import FileView, PublishedView
from fedanon.sdc.methods.pipeline import Pipeline, with_masked
from fedanon.types import IndexArray

#: how the rows of a file were matched with those of the original: in their order, by a key, by what they say; else why
#: not: there is no original, another number of rows, rows that show no record, several ways, values that the method
#: changed, or no way at all
Matching = Literal["order", "key", "content", "alone", "size", "groups", "ambiguous", "changed", "none"]
UNMATCHED: dict[Matching, str] = {
    "size": "the original has another number of rows",
    "groups": "the method publishes rows that show no record",
    "ambiguous": "rows are in random order, and some fit records of several classes; give --row-key",
    "changed": "rows are in random order, and the method changes values; give --row-key",
    "none": "rows are in random order, and no way to match them with the original fits; give --row-key",
}


@dataclass(frozen=True)
class KnownRelease:
    """A file with what its texts do not show.

    Parameters
    ----------
    view : with how columns were generalized; where rows are matched, in the order of the original and with its people.
    matching : how, or why not.
    """

    view: FileView
    matching: Matching

    @property
    def is_matched(self) -> bool:
        """Whether every row stands beside its record, or one that gives the same numbers."""
        return self.matching in ("order", "key", "content")


def with_known_facts(
    view: FileView, table: Table | None, manifest: Manifest | None, order: IndexArray | None = None
) -> KnownRelease:
    """The view with what is known from the manifest and the original; all published columns are held if both are given.

    ``order`` is that of a row key. Without it and without a manifest, the rows are taken to be in the order of the
    original.
    """
    known = replace(view, columnwise=manifest is not None and manifest.columnwise)
    if table is None:
        return KnownRelease(known, "alone")
    if table.lacks_key and view.schema.needs_key:
        raise ConfigError("The release has pseudonyms or shifted dates; give the key it was made with (--key).")
    if len(view) != len(table):
        return KnownRelease(known, "size")
    known = known.read_beside(table.schema)
    if manifest is not None and not manifest.shows_records:
        return KnownRelease(known, "groups")
    if order is not None:
        return _beside(known, np.argsort(order), table, "key")
    if manifest is None or manifest.keeps_order:
        return KnownRelease(replace(known, persons=table.persons), "order")
    return _by_content(known, table, manifest)


def _by_content(known: FileView, table: Table, manifest: Manifest) -> KnownRelease:
    if not is_truthful(manifest):
        return KnownRelease(known, "changed")
    found = match_rows(known, table)
    if found is None:
        return KnownRelease(known, "none")
    return KnownRelease(known, "ambiguous") if found.rows is None else _beside(known, found.rows, table, "content")


def _beside(known: FileView, rows: IndexArray, table: Table, matching: Matching) -> KnownRelease:
    if len(rows) != len(known):
        raise DataError(f"The row key has {len(rows)} rows, the release {len(known)}.")
    return KnownRelease(replace(known.in_order(rows), persons=table.persons), matching)


def with_masked_columns(
    path: Path, table: Table, manifest: Manifest, order: IndexArray | None = None
) -> tuple[Table, Release]:
    """The original and the release in a file with every column the chain changed as a quasi-identifier.

    The rows of the file have to be matched with those of ``table``, by their order or the ``order`` of a row key.
    """
    wide = with_masked(table, manifest.masked)
    known = with_known_facts(read_release(path, wide.schema, also=ALL), wide, manifest, order)
    release = reconstruct(known.view, wide)
    made = replace(release.provenance, method=Pipeline.name, parameters=manifest.provenance["parameters"])
    return wide, replace(release, provenance=made)


def carried_columns(view: PublishedView, path: Path | None) -> Iterator[pd.Series[Any]]:
    """The columns that are carried along, one at a time: as the view holds them, else from a Parquet file."""
    quasi = {attribute.name for attribute in view.schema.quasi_identifiers}
    for name in view.schema.published:
        if name in view.passthrough:
            yield view.passthrough[name]
        elif name not in quasi and path is not None:
            yield texts(read_columns(path, [name])[name])


def is_truthful(manifest: Manifest) -> bool:
    """Whether the method promises cells that hold the original values."""
    try:
        return bool(getattr(method_of(manifest), "truthful", False))
    except (KeyError, FedanonError):
        return False


def method_of(manifest: Manifest) -> Any:
    """The method that made a release, with its parameters."""
    made = manifest.provenance
    if made["method"] == Pipeline.name:
        return Pipeline.from_provenance(made)
    return build(ANONYMIZERS[made["method"]], made["parameters"])
