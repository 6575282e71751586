"""The gate every release passes before anything uses it."""

from __future__ import annotations

import numpy as np

from fedanon.data.table import Table
from fedanon.errors import PrivacyViolationError
from fedanon.release.release import Release


def verify(release: Release, table: Table) -> Release:
    """Return ``release`` if it fits ``table`` and keeps its claim; raise PrivacyViolationError otherwise."""
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
    leaked = sorted(set(release.passthrough.columns) & set(table.schema.identifying))
    if leaked:
        raise PrivacyViolationError(f"The release still holds identifying columns: {', '.join(leaked)}.")
    if release.claim is not None:
        release.claim.check(release, table)
    return release


def _same_people(release: Release, table: Table) -> bool:
    if release.persons is None or table.persons is None:
        return release.persons is table.persons
    return np.array_equal(release.persons, table.persons)
