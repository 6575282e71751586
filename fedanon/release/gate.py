"""The gate every release passes before anything uses it: the one place that decides whether a claim holds.

A release is evaluated once. The gate notes, for itself alone, which release it let pass for which table and what the
release held, so that whoever receives one may ask again at little cost. The note cannot be forged by a method or
carried over to another release: it is kept here, by the identity of the object, and a changed copy
(:func:`dataclasses.replace`) is another object. A release whose arrays or columns were changed in place no longer has
the digest in the note, and is refused.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
import pandas as pd

from fedanon.data.table import Table
from fedanon.errors import PrivacyViolationError
from fedanon.release.release import Release


class _Passed(NamedTuple):
    """A note: the table a release was evaluated for, and the digest of what it held."""

    table: ReferenceType[Table]
    digest: bytes


_passed: WeakKeyDictionary[Release, _Passed] = WeakKeyDictionary()


def verify(release: Release, table: Table) -> Release:
    """Return ``release`` if it fits ``table`` and keeps its claim; raise PrivacyViolationError otherwise."""
    note, digest = _passed.get(release), digest_release(release)
    if note is not None and note.digest != digest:
        raise PrivacyViolationError("The release was changed after it had been verified.")
    if note is None or note.table() is not table:
        _refuse_unfit(release, table)
        if release.claim is not None:
            release.claim.check(release, table)
        _passed[release] = _Passed(ref(table), digest)
    return release


def _refuse_unfit(release: Release, table: Table) -> None:
    table.schema.refuse_undecided()
    if len(release) != len(table) or len(release.groups.labels) != len(table):
        raise PrivacyViolationError(f"The release has {len(release)} rows, its table {len(table)}.")
    missing = [a.name for a in table.schema.quasi_identifiers if a.name not in release.cells]
    if missing:
        raise PrivacyViolationError(f"The release publishes no cells for: {', '.join(missing)}.")
    wrong = [name for name, cells in release.cells.items() if len(cells) != release.groups.count]
    if wrong:
        raise PrivacyViolationError(f"The release has a wrong number of cells for: {', '.join(wrong)}.")
    if not _same_people(release, table):
        raise PrivacyViolationError("The release counts other people than those of its table.")
    leaked = sorted(set(release.passthrough.columns) - set(table.schema.published))
    if leaked:
        raise PrivacyViolationError(f"The release holds columns that are not to be published: {', '.join(leaked)}.")


def _same_people(release: Release, table: Table) -> bool:
    if release.persons is None or table.persons is None:
        return release.persons is table.persons
    return np.array_equal(release.persons, table.persons)


def digest_release(release: Release) -> bytes:
    """A hash of all that is published and counted; it costs one pass over the values."""
    digest = hashlib.blake2b(release.groups.labels.tobytes())
    digest.update(b"" if release.persons is None else release.persons.tobytes())
    for name, cells in release.cells.items():
        digest.update(name.encode() + np.ascontiguousarray(cells.keys()).tobytes())
    for name in release.passthrough.columns:
        values = pd.util.hash_pandas_object(release.passthrough[name], index=False)
        digest.update(str(name).encode() + values.to_numpy().tobytes())
    return digest.digest()
