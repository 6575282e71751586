"""The order of the rows of a released file: random, from the system's randomness, so that no seed gives it away.

A row key is a file for the steward that says which row of the original every row of the release shows.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from fedanon.errors import DataError
from fedanon.io.atomic import atomic_write
from fedanon.types import IndexArray


def random_order(rows: int) -> IndexArray:
    """The numbers of all rows in an order that nobody can draw again."""
    return np.argsort(np.frombuffer(os.urandom(8 * rows), dtype=np.uint64), kind="stable")


def write_row_key(path: Path, order: IndexArray, release_sha256: str) -> None:
    """Write which original row each released row shows, for the owner of the file alone."""
    document = {"release_sha256": release_sha256, "order": order.tolist()}
    atomic_write(path, json.dumps(document, separators=(",", ":")) + "\n", mode=0o600)


def read_row_key(path: Path, release_sha256: str) -> IndexArray:
    """The original row of each row of the release with this hash."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        order = np.array(document["order"], dtype=np.int64)
        sound = order.ndim == 1 and np.array_equal(np.sort(order), np.arange(len(order)))
    except FileNotFoundError:
        raise DataError(f"The row key {path} does not exist.") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        raise DataError(f"The row key {path.name} cannot be read.") from None
    if not sound:
        raise DataError(f"The row key {path.name} cannot be read.")
    if document.get("release_sha256") != release_sha256:
        raise DataError(f"The row key {path.name} is that of another release.")
    return order
