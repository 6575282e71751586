"""Between a pipeline and a method that takes a table: the current columns go out, the release's cells come back.

Methods that take tables need exact values, so a column that an earlier step generalised is refused; a suppressed cell
is handed over as missing, with the policy 'wildcard'.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.anonymizers.perturbative.base import Columns
from fedanon.anonymizers.perturbative.stars import Mask, suppress
from fedanon.data.cells import Cells, Intervals, Nodes, is_suppressed
from fedanon.data.hierarchy import MISSING
from fedanon.data.release import Release
from fedanon.data.schema import Attribute, Categorical, Numeric, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError


def table_of_now(table: Table, current: Columns, names: list[str]) -> Table:
    """A table whose quasi-identifiers are ``names``, with the values earlier steps left; the people stay."""
    attributes = {column.name: column.attribute for column in table.columns}
    frame = pd.DataFrame({n: _exact(current[n], attributes[n]) for n in names}, index=table.frame.index)
    starred = any(is_suppressed(current[name], attributes[name]).any() for name in names)
    schema = Schema(tuple(_covering(attributes[name], frame[name]) for name in names), name=table.schema.name)
    made = Table.from_frame(frame, schema, missing="wildcard" if starred else table.missing)
    return replace(made, persons=table.persons, weights=table.weights, households=table.households)


def columns_of(release: Release, table: Table, names: list[str]) -> dict[str, Cells]:
    """The released cells, one a row; a row the method suppressed says nothing in its columns."""
    attributes = {column.name: column.attribute for column in table.columns}
    return {name: _row_cells(release, attributes[name]) for name in names}


def _row_cells(release: Release, attribute: Numeric | Categorical) -> Cells:
    if not release.groups.count:
        raise InfeasibleError(f"The method {release.provenance.method!r} suppressed every row.")
    cells = release.cells[attribute.name].take(release.groups.labels)
    if isinstance(cells, Nodes):
        assert isinstance(attribute, Categorical)
        # the taxonomy may have gained a leaf for missing values on the way; labels did not change
        nodes = [attribute.hierarchy.nodes[label] for label in cells.texts()]
        cells = Nodes(np.array(nodes, dtype=np.int32), attribute.hierarchy)
    return suppress(cells, attribute, release.suppressed) if release.suppressed.any() else cells


def _exact(cells: Cells, attribute: Numeric | Categorical) -> NDArray[Any]:
    """The values of a column, missing where it says nothing."""
    starred = is_suppressed(cells, attribute)
    if isinstance(cells, Nodes):
        _refuse_general((cells.nodes >= cells.hierarchy.n_leaves) & ~starred, attribute.name)
        texts = cells.texts()
        texts[starred | (texts == MISSING)] = None
        return texts
    if isinstance(cells, Intervals):
        _refuse_general((cells.low < cells.high) & ~starred, attribute.name)
    return np.where(starred, np.nan, cells.midpoints())


def _refuse_general(general: Mask, name: str) -> None:
    count = int(general.sum())
    if count:
        raise ConfigError(
            f"The column {name!r} has {count} cells that an earlier step generalised; this method takes exact values."
        )


def _covering(attribute: Numeric | Categorical, values: pd.Series[Any]) -> Attribute:
    """The declaration, its range widened to the values: noise goes beyond the range and is no whole number."""
    if isinstance(attribute, Categorical):
        return attribute
    low, high = (float(bound) for bound in (values.min(), values.max()))
    return replace(
        attribute, low=min(attribute.low, low), high=max(attribute.high, high), integer=False, hierarchy=None
    )
