"""Release: what an anonymizer publishes, with what it claims and how it came about.

Cells are typed arrays, one cell a group of rows. Two notions of "the rows published together" exist:
``groups`` are those the method formed; ``classes`` are the equivalence classes an attacker sees, the rows whose
published quasi-identifiers are equal. Privacy is always judged on ``classes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import ROOT
from fedanon.data.schema import Schema
from fedanon.types import IntArray

if TYPE_CHECKING:
    from fedanon.data.table import Table


class Claim(Protocol):
    """What a release promises; a privacy model."""

    def check(self, release: Release, table: Table) -> None:
        """Raise PrivacyViolationError unless the release keeps the promise."""

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters for the manifest."""

    def describe(self) -> str:
        """One sentence for people."""


class Recoding(Protocol):
    """How the generalisation of a release is applied to rows it was not made from."""

    #: whether every column is generalised alone
    columnwise: ClassVar[bool]

    def apply(self, release: Release, table: Table) -> tuple[IntArray, Mapping[str, Cells]]:
        """Group number of every new row, and the cells of these groups."""


@dataclass(frozen=True)
class Provenance:
    """Where a release comes from: enough to make it again."""

    method: str
    parameters: Mapping[str, Any]
    seed: int | None
    version: str
    data_sha256: str
    schema_sha256: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Release:
    """A published table.

    Parameters
    ----------
    schema : of the table it was made from.
    passthrough : the columns that are carried along unchanged.
    groups : the groups the method formed; suppressed rows are in none.
    cells : for every quasi-identifier, one cell a group.
    claim : what is promised about the published rows, or None.
    provenance : method, parameters, seed, version, hashes.
    recoding : how new rows are generalised alike.
    in_group_order : whether rows are published group by group, so that their order tells of no record.
    """

    schema: Schema
    passthrough: pd.DataFrame
    groups: Groups
    cells: Mapping[str, Cells]
    claim: Claim | None
    provenance: Provenance
    recoding: Recoding = field(repr=False)
    in_group_order: bool = False

    def __len__(self) -> int:
        return len(self.passthrough)

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Mask of the rows of which nothing is published."""
        return self.groups.suppressed

    @cached_property
    def classes(self) -> Groups:
        """The equivalence classes: rows whose published quasi-identifiers are equal."""
        names = [a.name for a in self.schema.quasi_identifiers]
        if not names or self.groups.count == 0:
            return Groups.from_labels(np.where(self.suppressed, -1, 0))
        equal = Groups.equal_rows(np.column_stack([self.cells[name].keys() for name in names]))
        labels = np.append(equal.labels, np.int32(-1))[self.groups.labels]
        return Groups.from_labels(labels)

    def groups_of(self, name: str) -> Groups:
        """The rows generalised together in one column: the groups or, if columns are alone, those that share a cell."""
        if not self.recoding.columnwise:
            return self.groups
        equal = Groups.equal_rows(self.cells[name].keys())
        return Groups(np.append(equal.labels, np.int32(-1))[self.groups.labels], equal.count)

    def recode(self, table: Table) -> Release:
        """Apply the same generalisation to other rows (for testing a model); it claims nothing about them."""
        labels, cells = self.recoding.apply(self, table)
        return Release(
            schema=self.schema,
            passthrough=_passthrough(table),
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
        cells = {
            name: np.append(column.texts(), ROOT)[np.where(hidden, len(column), self.groups.labels)]
            for name, column in self.cells.items()
        }
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

    def to_csv(self, path: str | Path, table: Table) -> Path:
        """Verify the release once more and write it with its manifest; ``table`` is what it was made from."""
        from fedanon.io.release_file import write_release

        return write_release(self, table, path)


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
    return Release(table.schema, _passthrough(table), groups, cells, claim, provenance, recoding)


def _passthrough(table: Table) -> pd.DataFrame:
    quasi = {a.name for a in table.schema.quasi_identifiers}
    return table.frame[[name for name in table.frame.columns if name not in quasi]]
