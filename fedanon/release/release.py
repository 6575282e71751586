"""Release: what an anonymizer publishes, with what it claims and how it came about.

Cells are typed arrays, one cell per group of rows; see :mod:`fedanon.release.view` for what an observer sees of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from fedanon.data.cells import Cells, as_written, cell_texts
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import ROOT
from fedanon.data.table import Table
from fedanon.privacy.base import Claim
from fedanon.release.view import PublishedView
from fedanon.types import IntArray

#: said of a claim where pseudonyms show which rows are one person's
SERIES = "; counted are people all of whose published records have the same quasi-identifiers, row for row"


class Recoding(Protocol):
    """How the generalization of a release is applied to rows it was not made from."""

    #: whether every column is generalized alone
    columnwise: ClassVar[bool]

    def apply(self, release: Release, table: Table) -> tuple[IntArray, Mapping[str, Cells]]:
        """Group number of every new row, and the cells of these groups."""


@dataclass(frozen=True)
class Provenance:
    """Where a release comes from: enough to make it again.

    ``made`` is what a search did whose budget was wall time: ``iterations`` of every run and, where these decide what
    is found, the ``runs`` themselves (:func:`fedanon.anonymizers.progress.repeating`); empty for all other methods.
    """

    method: str
    parameters: Mapping[str, Any]
    seed: int | None
    version: str
    data_sha256: str
    schema_sha256: str
    notes: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        document = asdict(self)
        return document if self.made else {name: value for name, value in document.items() if name != "made"}


@dataclass(frozen=True, eq=False)
class Release(PublishedView):
    """A published table, with what it claims and how it came about.

    Parameters
    ----------
    claim : what is promised about the published rows, or None.
    provenance : method, parameters, seed, version, hashes.
    recoding : how new rows are generalized alike.
    """

    claim: Claim | None
    provenance: Provenance
    recoding: Recoding = field(repr=False)

    @property
    def promise(self) -> str:
        """What is claimed, as a clause about people or, where the schema does not know them, records; '' if nothing."""
        said = "" if self.claim is None else self.claim.describe(self.schema.unit)
        return said + SERIES if said and self.has_pseudonyms else said

    def groups_of(self, name: str) -> Groups:
        """The rows generalized together in one column: the groups or, if columns are alone, those that share a cell."""
        if not self.recoding.columnwise:
            return self.groups
        equal = Groups.equal_rows(self.cells[name].keys())
        return Groups(np.append(equal.labels, np.int32(-1))[self.groups.labels], equal.count)

    def recode(self, table: Table) -> Release:
        """Apply the same generalization to other rows (for testing a model); it claims nothing about them."""
        labels, cells = self.recoding.apply(self, table)
        return Release(
            schema=self.schema,
            passthrough=_passthrough(table),
            persons=table.persons,
            groups=Groups.from_labels(labels) if len(cells) == 0 else Groups(labels, len(next(iter(cells.values())))),
            cells=cells,
            claim=None,
            provenance=self.provenance,
            recoding=self.recoding,
        )

    def to_frame(self) -> pd.DataFrame:
        """The published table: original index and columns; suppressed rows show '*' and nothing else."""
        if self.in_group_order:
            return self._regrouped().to_frame()
        hidden = self.suppressed
        frame = self.passthrough
        if hidden.any():
            # whole numbers stay whole beside the cells that are now empty
            frame = frame.astype(dict.fromkeys(frame.select_dtypes("integer"), "Int64"))
            frame = frame.mask(np.broadcast_to(hidden[:, None], frame.shape))
        at = np.where(hidden, self.groups.count, self.groups.labels)
        cells = {n: np.append(cell_texts(column, self.schema[n]), ROOT)[at] for n, column in self.cells.items()}
        return pd.concat([frame, pd.DataFrame(cells, index=frame.index)], axis=1)[self.schema.published]

    def _regrouped(self) -> Release:
        """The same rows, group by group, under the original index."""
        order = np.argsort(self.groups.labels, kind="stable")
        groups = replace(self.groups, labels=self.groups.labels[order])
        return replace(
            self,
            passthrough=self.passthrough.iloc[order].set_index(self.passthrough.index),
            groups=groups,
            in_group_order=False,
        )


def release_of(
    table: Table,
    groups: Groups,
    cells: Mapping[str, Cells],
    *,
    claim: Claim | None,
    provenance: Provenance,
    recoding: Recoding,
) -> Release:
    """A release of ``table``, which gives the schema and the columns that are carried along."""
    return Release(
        schema=table.schema,
        passthrough=_passthrough(table),
        groups=groups,
        cells={name: as_written(column, table.schema[name]) for name, column in cells.items()},
        persons=table.persons,
        claim=claim,
        provenance=provenance,
        recoding=recoding,
    )


def _passthrough(table: Table) -> pd.DataFrame:
    quasi = {a.name for a in table.schema.quasi_identifiers}
    # by position, as labels would be looked up in an index of text, which takes as long again
    return table.frame.iloc[:, [i for i, name in enumerate(table.frame.columns) if name not in quasi]]
