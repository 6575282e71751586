"""Distances of known records to everything a release publishes, by some of the quasi-identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.distances import record_distances

#: how many distances are held in memory at once
CHUNK = 4_000_000
#: distances that differ by rounding alone are equal
ROUNDING = 1e-9


def nearest_classes(
    release: Release, table: Table, rows: NDArray[np.int64], columns: Sequence[int]
) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """For the records ``rows`` of ``table``, chunk by chunk, which classes of the release are nearest.

    Parameters
    ----------
    release : what the attacker has; not necessarily made from ``table``, but of the same columns.
    table : people of whom the quasi-identifiers are known.
    rows : those of them that are looked for.
    columns : by which quasi-identifiers; distances are those of :func:`fedanon.metrics.distances.record_distances`.

    Yields
    ------
    The part of ``rows``, and a mask with one row a record and one column a class of ``release``.
    """
    by_code = [_to_codes(release, table, column) for column in columns]
    step = max(1, CHUNK // max(release.classes.count, 1))
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        total = np.zeros((part.stop - start, release.classes.count))
        for column, (cell_of, distance) in zip(columns, by_code, strict=True):
            total += distance[table.codes[rows[part], column]][:, cell_of]
        yield part, total <= total.min(axis=1, keepdims=True) + ROUNDING


def _to_codes(release: Release, table: Table, column: int) -> tuple[NDArray[np.int32], FloatArray]:
    """The distinct cell of every class, and the distance of every code of the column (rows) to each of these cells."""
    coded, classes = table.columns[column], release.classes
    cells = release.cells[coded.name].take(release.groups.labels[classes.first_rows])
    equal = Groups.equal_rows(cells.keys())
    return equal.labels, np.ascontiguousarray(record_distances(cells.take(equal.first_rows), coded).T)
