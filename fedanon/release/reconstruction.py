"""A released file as a Release again, beside the table it was made from, so that metrics that need both apply to it."""

from __future__ import annotations

from typing import ClassVar

from fedanon.data.cells import parse_cells
from fedanon.data.table import Table
from fedanon.errors import SchemaError
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance, Release
from fedanon.release.view import FileView


class PerCell(NearestGroup):
    """Every column was generalized alone, so the rows that share a cell are published together in that column."""

    columnwise: ClassVar[bool] = True


def reconstruct(view: FileView, table: Table) -> Release:
    """The release in a file whose rows are those of ``table`` in the same order; it claims nothing."""
    if len(view) != len(table):
        raise SchemaError(f"The release has {len(view)} rows, the original {len(table)}: they must match in order.")
    shown = view.frame.iloc[view.classes.first_rows]
    cells = {c.name: parse_cells(shown[c.name], c.attribute) for c in table.columns}
    return Release(
        schema=table.schema,
        passthrough=view.frame[[name for name in view.frame.columns if name not in cells]],
        groups=view.classes,
        cells=cells,
        persons=table.persons,
        claim=None,
        provenance=Provenance("unknown", {}, None, "", table.sha256, table.schema.sha256),
        recoding=PerCell() if view.columnwise else NearestGroup(),
    )
