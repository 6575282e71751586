"""Windows: what a gateway has published, file by file, each with a manifest; and all of them read back.

A window is there when its manifest is. Both are written once under a name that follows from what was published, so that
a gateway that repeats a window after a crash finds it and leaves it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedanon._version import __version__
from fedanon.errors import DataError, PrivacyViolationError
from fedanon.io.atomic import atomic_file, atomic_write
from fedanon.io.formula_guard import guard, unguard
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.outputs import MANIFEST, manifest_path
from fedanon.streams.ledger import Ledger, Shown

Row = dict[str, Any]


class WindowFolder:
    """Writes windows into a folder.

    Parameters
    ----------
    folder : made if it does not exist.
    ending : 'auto', 'parquet' or 'csv'; auto is Parquet where pyarrow is installed.
    columns : of a window, in order.
    facts : what every manifest says: claim and provenance.
    secret : from which the order of rows follows, so that it is the same again and says nothing.
    """

    def __init__(
        self, folder: Path, ending: str, columns: Sequence[str], facts: Mapping[str, Any], secret: bytes
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._columns, self._facts, self._secret = folder, list(columns), facts, secret
        automatic = "parquet" if find_spec("pyarrow") is not None else "csv"
        self._ending: str = automatic if ending == "auto" else ending

    def path(self, number: int) -> Path:
        """The file of a window."""
        return self._folder / f"window-{number:08d}.{self._ending}"

    def write(self, number: int, rows: Sequence[Row], counts: Mapping[str, int]) -> bool:
        """Write a window, unless it is there; whether it was written."""
        path = self.path(number)
        if manifest_path(path).exists():
            return False
        seed = int.from_bytes(hashlib.blake2b(f"window {number}".encode(), key=self._secret, digest_size=8).digest())
        ordered = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
        with atomic_file(path) as file:
            file.write(self._bytes(ordered))
        before = manifest_path(self.path(number - 1))
        document = {
            **self._facts,
            "window": number,
            "rows": len(rows),
            "counts": dict(counts),
            f"{self._ending}_sha256": file_sha256(path),
            "previous_manifest_sha256": file_sha256(before) if number and before.exists() else None,
            "fedanon": __version__,
        }
        atomic_write(manifest_path(path), json.dumps(document, indent=2) + "\n")
        return True

    def _bytes(self, rows: Sequence[Row]) -> bytes:
        if self._ending == "csv":
            text = io.StringIO(newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(self._columns)
            writer.writerows([_cell(row[name]) for name in self._columns] for row in rows)
            return text.getvalue().encode()
        from fedanon.io.parquet import pyarrow

        arrow, buffer = pyarrow(), io.BytesIO()
        table = arrow.table({name: [row[name] for row in rows] for name in self._columns})
        arrow.parquet.write_table(table, buffer)
        return buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return guard(value) if isinstance(value, str) else str(value)


# ---- reading back --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """A published window: its file and its manifest."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def number(self) -> int:
        """Counted from 0."""
        return int(self.manifest["window"])

    @cached_property
    def rows(self) -> list[Row]:
        """What it holds."""
        if self.path.suffix == ".parquet":
            from fedanon.io.parquet import pyarrow

            return list(pyarrow().parquet.read_table(self.path).to_pylist())
        with self.path.open(encoding="utf-8", newline="") as file:
            return [{name: unguard(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


@dataclass(frozen=True)
class WindowCheck:
    """What was found in the windows of a stream.

    Parameters
    ----------
    claim : what the manifests say is claimed.
    windows, rows : how many there are.
    broken : in how many combinations, window by window, the claim does not hold in what was published until then.
    faults : what else is wrong, in words.
    left_open : whether people whom nothing tells apart in the output were to be counted; rows were.
    """

    claim: Mapping[str, Any]
    windows: int
    rows: int
    broken: int
    faults: tuple[str, ...]
    left_open: bool

    def require(self) -> None:
        """Raise PrivacyViolationError unless nothing is wrong."""
        if self.broken:
            raise PrivacyViolationError(f"The windows break the claim of k={self.claim['k']} in {self.broken} classes.")
        if self.faults:
            raise PrivacyViolationError(self.faults[0])


def read_windows(folder: Path) -> Iterator[Window]:
    """The windows of a folder in order; a file without a manifest is none."""
    manifests = sorted(folder.glob(f"window-*{MANIFEST}"))
    if not manifests:
        raise DataError(f"The folder {folder} has no windows.")
    for path in manifests:
        manifest = Manifest.read(path)
        yield Window(manifest.release, manifest.document)


def check_windows(folder: Path, quasi: Sequence[str]) -> WindowCheck:
    """Recount the claim on all windows together, after each of them, and compare the files with their manifests."""
    faults: list[str] = []
    ledger: Ledger | None = None
    claim: Mapping[str, Any] = {}
    rows = broken = count = 0
    previous: str | None = None
    for window in read_windows(folder):
        name = window.path.name
        if ledger is None:
            claim = dict(window.manifest["claim"])
            kind: Literal["records", "people"] = "people" if claim.get("stream") == "people" else "records"
            ledger = Ledger(kind, int(claim["k"]), quasi)
        faults += _faults(window, count, claim, previous)
        broken += ledger.add(Shown(row) for row in window.rows)
        if len(window.rows) != window.manifest["rows"]:
            faults.append(f"{name} has {len(window.rows)} rows, its manifest says {window.manifest['rows']}.")
        rows, count = rows + len(window.rows), count + 1
        previous = file_sha256(manifest_path(window.path))
    left_open = claim.get("stream") == "records" and claim.get("counted") == "people"
    return WindowCheck(claim, count, rows, broken, tuple(faults), left_open)


def _faults(window: Window, number: int, claim: Mapping[str, Any], previous: str | None) -> list[str]:
    name, manifest = window.path.name, window.manifest
    found: list[str] = []
    if window.number != number:
        found.append(f"Window {number} is missing before {name}.")
    if manifest["claim"] != claim:
        found.append(f"The manifest of {name} claims something else than the first.")
    if manifest.get("previous_manifest_sha256") != previous:
        found.append(f"The manifest of {name} does not follow the one before it.")
    if file_sha256(window.path) != manifest.get(f"{window.path.suffix[1:]}_sha256"):
        found.append(f"{name} is not the file its manifest describes.")
    return found
