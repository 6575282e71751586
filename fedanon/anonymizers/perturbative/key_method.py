"""What the methods for key columns share: they say in words what they did, and some of them claim k-anonymity."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedanon.anonymizers.base import Draft, Rng
from fedanon.anonymizers.perturbative.base import NO_CLAIM, Columns, Perturbative, draft_of, own_columns
from fedanon.data.table import Table


@dataclass(frozen=True, kw_only=True)
class KeyMethod(Perturbative):
    """Base of the methods for key columns; they add :meth:`remarks` to the notes of a release."""

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """What a reader of the release has to know about this step; no cell is quoted."""
        return ()

    def draft(self, table: Table, rng: Rng) -> Draft:
        """The table's own cells, changed once, with remarks."""
        before = own_columns(table)
        after = {**before, **self.change(table, before, rng)}
        silent = self.truthful or self.claim() is not None
        notes = (*self.remarks(table, before, after), *(() if silent else (NO_CLAIM,)))
        return replace(draft_of(table, after, ()), notes=notes)
