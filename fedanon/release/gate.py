"""The gate every release passes before anything uses it."""

from __future__ import annotations

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
    leaked = sorted(set(release.passthrough.columns) & set(table.schema.identifying))
    if leaked:
        raise PrivacyViolationError(f"The release still holds identifying columns: {', '.join(leaked)}.")
    if release.claim is not None:
        release.claim.check(release, table)
    return release
