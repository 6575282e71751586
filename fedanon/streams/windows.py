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
from typing import Any

import numpy as np

from fedanon._version import __version__
from fedanon.errors import DataError
from fedanon.io.atomic import atomic_file, atomic_write
from fedanon.io.formula_guard import guard, unguard
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.outputs import MANIFEST, manifest_path

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


def count_windows(folder: Path) -> int:
    """Number of windows in a folder; a file without a manifest is none."""
    return len(list(folder.glob(f"window-*{MANIFEST}")))


def read_windows(folder: Path, begin: int = 0, end: int | None = None) -> Iterator[Window]:
    """The windows of a folder in order, some of them if places are given; a file without a manifest is none."""
    manifests = sorted(folder.glob(f"window-*{MANIFEST}"))
    if not manifests:
        raise DataError(f"The folder {folder} has no windows.")
    for path in manifests[begin:end]:
        manifest = Manifest.read(path)
        yield Window(manifest.release, manifest.document)
