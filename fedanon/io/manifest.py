"""A manifest read back: what a released file was said to be, to be held against what it is."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fedanon.data.schema import MAX_BYTES, Role, Schema
from fedanon.errors import DataError, FedanonError
from fedanon.io.dialect import Dialect, dialect_of
from fedanon.io.outputs import MANIFEST, manifest_path, release_kind


@dataclass(frozen=True)
class Manifest:
    """A manifest and the file it describes.

    Parameters
    ----------
    path : of the manifest.
    release : the released file, there or not.
    document : what it says.
    """

    path: Path
    release: Path
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path, release: Path | None = None) -> Manifest:
        """Read a manifest; the file it describes bears its name without the ending, unless ``release`` is given."""
        try:
            document = json.loads(_text(path))
        except (OSError, ValueError, RecursionError):
            raise DataError(f"The manifest {path.name} cannot be read.") from None
        if not isinstance(document, dict) or not {"claim", "provenance"} <= set(document):
            raise DataError(f"The manifest {path.name} cannot be read.")
        return cls(path, release or _described(path), document)

    @classmethod
    def beside(cls, release: Path) -> Manifest | None:
        """The manifest of a released file, if it lies beside it."""
        path = manifest_path(release)
        return cls.read(path, release) if path.exists() else None

    @property
    def claim(self) -> dict[str, Any]:
        """What is promised; empty if nothing is."""
        return dict(self.document["claim"] or {})

    @property
    def provenance(self) -> dict[str, Any]:
        """Method, parameters, seed, version, hashes."""
        return dict(self.document["provenance"])

    @property
    def expected_sha256(self) -> str:
        """Hash of the file that was written."""
        try:
            return str(self.document[f"{release_kind(self.release)}_sha256"])
        except KeyError:
            raise DataError(f"The manifest {self.path.name} cannot be read.") from None

    @property
    def is_of_file(self) -> bool:
        """Whether the file is, byte for byte, the one that was written."""
        return file_sha256(self.release) == self.expected_sha256

    @property
    def columnwise(self) -> bool:
        """Whether every column was generalized alone; a manifest of version 0.1 does not say."""
        return bool(self.document.get("columnwise", False))

    @property
    def dialect(self) -> Dialect | None:
        """How the CSV file is written; None if a file of another format is described."""
        return dialect_of(self.document) if "csv_sha256" in self.document or not self._says_format else None

    @property
    def _says_format(self) -> bool:
        return any(f"{kind}_sha256" in self.document for kind in ("parquet", "xlsx", "ndjson"))

    @property
    def formula_guard(self) -> bool:
        """Whether text like a formula has an apostrophe in front; it always had in version 0.1."""
        return bool(self.document.get("formula_guard", "csv_sha256" in self.document))

    @property
    def changes(self) -> list[dict[str, Any]]:
        """What was changed in the file beside what the method changed."""
        found = self.document.get("changes", [])
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    @property
    def guarded_cells(self) -> dict[str, int]:
        """The number of cells with an apostrophe in front, by column."""
        return {name: n for entry in self.changes for name, n in dict(entry.get("cells", {})).items()}

    @property
    def shows_records(self) -> bool:
        """Whether every row shows a record of the original; those of a differentially private release do not."""
        return self.claim.get("model") != "differential privacy"

    @property
    def keeps_order(self) -> bool:
        """Whether the rows are in the order of the original, as they always were in version 0.1."""
        return self.shows_records and self.document.get("row_order", "kept") == "kept"

    @property
    def masked(self) -> list[str]:
        """The columns that a chain of steps changed although the schema does not call them quasi-identifiers."""
        parameters = self.provenance.get("parameters")
        found = parameters.get("masked", []) if isinstance(parameters, dict) else []
        return [str(name) for name in found] if isinstance(found, list) else []

    @cached_property
    def schema(self) -> Schema | None:
        """The schema of the release, if the manifest holds it."""
        text = self.document.get("schema")
        if text is None:
            return None
        try:
            return Schema.from_dict(tomllib.loads(str(text)))
        except (tomllib.TOMLDecodeError, RecursionError):
            raise DataError(f"The schema in the manifest {self.path.name} cannot be read.") from None

    @cached_property
    def declared_schema(self) -> Schema | None:
        """The schema with the roles of the original: a chain also publishes cells of columns that it masked.

        Those that the steward chose as keys stay quasi-identifiers.
        """
        # a manifest from before roles were kept has none
        if self.schema is None or not self.masked or "roles" not in self.provenance["parameters"]:
            return self.schema
        parameters = self.provenance["parameters"]
        try:
            roles, keys = parameters["roles"], parameters["variables"]["used"]["keys"]
            names = [name for name in self.masked if name in roles and name not in keys]
            changed = [replace(self.schema[name], role=Role(roles[name])) for name in names]
        except (FedanonError, KeyError, TypeError, ValueError):
            raise DataError(f"The roles in the manifest {self.path.name} do not fit its schema.") from None
        return self.schema.replacing(*changed)


def file_sha256(path: Path) -> str:
    """Hash of a file's bytes."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise DataError(f"The file {path.name} is not there or cannot be read.") from None


def _text(path: Path) -> str:
    if path.stat().st_size > 2 * MAX_BYTES:
        raise DataError(f"The manifest {path.name} is larger than {2 * MAX_BYTES // 2**20} MB.")
    return path.read_text(encoding="utf-8")


def _described(path: Path) -> Path:
    if not path.name.endswith(MANIFEST):
        raise DataError(f"The name {path.name} does not end in {MANIFEST}; say which file it describes with --release.")
    return path.with_name(path.name.removesuffix(MANIFEST))
