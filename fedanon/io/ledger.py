"""The ledger of a series: what was published for which pseudonym, in a private file beside the schema.

Three files bear the name of the schema: ``.ledger.json`` holds the history, sealed with the key; ``.ledger.key`` is the
key, from which pseudonyms and seal are made, and never leaves; ``.ledger.pending.json`` exists while a release is being
written. A release takes its name only after the pending ledger knows it, so that none is ever published that the ledger
does not know; :meth:`SeriesLedger.read` finishes or forgets what an interrupted run left.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.cells import cell_texts
from fedanon.data.table import Table, texts
from fedanon.errors import ConfigError, DataError
from fedanon.io.atomic import atomic_write
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.outputs import manifest_path
from fedanon.privacy.series import History, SeriesClaim, Stay
from fedanon.release.release import Release

FORMAT = 1
MODE = 0o600


@dataclass(frozen=True)
class LedgerEntry:
    """One release of a series.

    Parameters
    ----------
    name : of the released file.
    file_sha256, manifest_sha256 : hashes of the file and of its manifest.
    classes : of every class its published cells, in the order of the schema, and the numbers of its cohorts.
    """

    name: str
    file_sha256: str
    manifest_sha256: str
    classes: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class SeriesLedger:
    """A series as its owner knows it.

    Parameters
    ----------
    path : of the ledger.
    key : secret, from which pseudonyms are made.
    schema_sha256 : hash of the schema of all tables.
    entries : the releases so far.
    history : what they showed; None before the first.
    """

    path: Path
    key: bytes = field(repr=False)
    schema_sha256: str
    entries: tuple[LedgerEntry, ...] = ()
    history: History | None = None

    # ---- people ---------------------------------------------------------------------------------

    def pseudonyms(self, people: pd.Series[Any], table: Table) -> list[str]:
        """The pseudonym of every person of a table, by number; ``people`` is its person_id column."""
        codes, names = pd.factorize(people, sort=True)
        if table.persons is None or not np.array_equal(codes, table.persons):
            raise DataError("The people of the table are not those of its person_id column.")
        return [self._digest(b"person", str(name).encode()) for name in texts(pd.Series(names))]

    def _digest(self, purpose: bytes, data: bytes) -> str:
        return hmac.new(self.key, purpose + b"\0" + data, hashlib.sha256).hexdigest()

    # ---- the releases before --------------------------------------------------------------------

    def check_previous(self, manifests: Sequence[Manifest]) -> None:
        """Raise ConfigError unless the manifests named are those of all releases so far, unchanged."""
        named = {file_sha256(manifest.path): manifest.path.name for manifest in manifests}
        known = {entry.manifest_sha256: entry.name for entry in self.entries}
        foreign = sorted(name for digest, name in named.items() if digest not in known)
        if foreign:
            raise ConfigError(
                f"The ledger {self.path.name} does not know the release of {', '.join(foreign)}: it is not of this "
                "series, or its manifest was changed."
            )
        left_out = [name for digest, name in known.items() if digest not in named]
        if left_out:
            raise ConfigError(
                f"The series has {len(known)} releases; name the manifests of all with --previous, also of: "
                f"{', '.join(left_out)}."
            )

    # ---- reading --------------------------------------------------------------------------------

    @classmethod
    def start(cls, schema: Path, schema_sha256: str) -> SeriesLedger:
        """A ledger for the first release; ConfigError if there is one already."""
        path = ledger_path(schema)
        settle_pending(path)
        if path.exists():
            raise ConfigError(
                f"A series was begun: {path.name} lies beside the schema. Name its releases with --previous, or move "
                "the ledger and its key away to begin another; people in both are then not protected over both."
            )
        key_file = key_path(path)
        if not key_file.exists():
            atomic_write(key_file, secrets.token_hex(32) + "\n", mode=MODE)
        return cls(path, _read_key(key_file), schema_sha256)

    @classmethod
    def read(cls, schema: Path, schema_sha256: str) -> SeriesLedger:
        """The ledger beside a schema; an error says what does not fit."""
        path = ledger_path(schema)
        settle_pending(path)
        if not path.exists():
            raise ConfigError(f"There is no ledger {path.name} beside the schema: begin the series with --series.")
        key = _read_key(key_path(path))
        document = _load(path)
        ledger = cls(path, key, schema_sha256)
        if not hmac.compare_digest(str(document.get("key_check")), ledger._digest(b"check", b"")):
            raise DataError(
                f"The key {key_path(path).name} is not that of the ledger: the people of earlier releases would not be "
                "recognized. Restore the key, or begin another series."
            )
        if document.get("schema_sha256") != schema_sha256:
            raise DataError(f"The ledger {path.name} is that of another schema: restore the schema of the series.")
        seal = str(document.pop("seal", ""))
        if not hmac.compare_digest(seal, ledger._digest(b"seal", _canonical(document))):
            raise DataError(f"The ledger {path.name} was changed or is damaged: restore it from a backup.")
        return replace(ledger, entries=_entries(document), history=_history(document))

    # ---- writing --------------------------------------------------------------------------------

    def announce(self, release: Release, output: Path) -> Callable[[str], None]:
        """What writes the pending ledger, given the text of a release's manifest, before the release is written."""

        def write(manifest: str) -> None:
            document = self._with(release, output, manifest)
            pending = {"ledger": document, "output": str(output.resolve()), "manifest": manifest}
            atomic_write(pending_path(self.path), json.dumps(pending), mode=MODE)

        return write

    def _with(self, release: Release, output: Path, manifest: str) -> dict[str, Any]:
        claim = release.claim
        assert isinstance(claim, SeriesClaim)
        stated = json.loads(manifest)
        digest = str(stated.get("csv_sha256", stated.get("parquet_sha256")))
        manifest_digest = hashlib.sha256(manifest.encode()).hexdigest()
        entry = LedgerEntry(output.name, digest, manifest_digest, classes_of(release, claim.cohort_of_row))
        history = claim.history
        document = {
            "format": FORMAT,
            "schema_sha256": self.schema_sha256,
            "key_check": self._digest(b"check", b""),
            "releases": [vars(each) for each in (*self.entries, entry)],
            "columns": history.columns,
            "least": dict(history.least),
            "values": history.values,
            "cohorts": [[[s.person, s.value, s.start, s.stop, s.away] for s in cohort] for cohort in history.cohorts],
        }
        plain = json.loads(json.dumps(document))
        return {**plain, "seal": self._digest(b"seal", _canonical(plain))}


def classes_of(release: Release, cohort_of_row: Any) -> tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]:
    """Of every class its published cells, in the order of the schema, and the numbers of its cohorts."""
    shown = {name: cell_texts(cells, release.schema[name]) for name, cells in release.class_cells.items()}
    names = [attribute.name for attribute in release.schema.quasi_identifiers]
    inside: list[set[int]] = [set() for _ in range(release.classes.count)]
    for row in np.flatnonzero(~release.suppressed).tolist():
        inside[release.classes.labels[row]].add(int(cohort_of_row[row]))
    return tuple(
        (tuple(str(shown[name][label]) for name in names), tuple(sorted(cohorts)))
        for label, cohorts in enumerate(inside)
    )


def settle_pending(path: Path) -> None:
    """Finish what an interrupted run announced if its release was written, and forget it if it was not."""
    pending = pending_path(path)
    if not pending.exists():
        return
    document = _load(pending)
    try:
        ledger, output, manifest = document["ledger"], Path(document["output"]), str(document["manifest"])
        expected = ledger["releases"][-1]["file_sha256"]
    except (KeyError, TypeError, IndexError):
        raise DataError(f"The file {pending.name} cannot be read; move it away if no release was written.") from None
    if output.exists() and file_sha256(output) == expected:
        if not manifest_path(output).exists():
            atomic_write(manifest_path(output), manifest)
        atomic_write(path, json.dumps(ledger), mode=MODE)
    pending.unlink()


def ledger_path(schema: Path) -> Path:
    """Where the ledger of the series of a schema lies."""
    return schema.with_suffix(".ledger.json")


def key_path(ledger: Path) -> Path:
    """Where the key of a ledger lies."""
    return ledger.with_suffix(".key")


def pending_path(ledger: Path) -> Path:
    """Where a ledger lies while its last release is being written."""
    return ledger.with_suffix(".pending.json")


def _read_key(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        raise DataError(
            f"The key {path.name} of the ledger is missing: the people of earlier releases would not be recognized. "
            "Restore the key, or begin another series."
        ) from None
    except (OSError, ValueError):
        raise DataError(f"The key {path.name} of the ledger cannot be read.") from None
    if len(key) < 16:
        raise DataError(f"The key {path.name} of the ledger is too short.")
    return key


def _load(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise DataError(f"The ledger {path.name} cannot be read.") from None
    if not isinstance(document, dict):
        raise DataError(f"The ledger {path.name} cannot be read.")
    return document


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _entries(document: dict[str, Any]) -> tuple[LedgerEntry, ...]:
    return tuple(
        LedgerEntry(
            each["name"],
            each["file_sha256"],
            each["manifest_sha256"],
            tuple((tuple(cells), tuple(cohorts)) for cells, cohorts in each["classes"]),
        )
        for each in document["releases"]
    )


def _history(document: dict[str, Any]) -> History:
    cohorts = (
        tuple(Stay(who, value, start, stop, tuple(map(tuple, away))) for who, value, start, stop, away in cohort)
        for cohort in document["cohorts"]
    )
    return History(
        tuple(document["columns"]),
        document["least"],
        tuple(map(tuple, document["values"])),
        tuple(cohorts),
        len(document["releases"]),
    )
