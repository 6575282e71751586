"""Information loss of numbers: how far the published values lie from the originals, in units of their spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.published import positions


class _Column(NamedTuple):
    """A numeric quasi-identifier, without suppressed and missing cells."""

    original: FloatArray
    published: FloatArray

    @property
    def spread(self) -> float:
        """Sample standard deviation of the originals."""
        return float(self.original.std(ddof=1))


@metric("il", title="IL (%)", better="lower")
def il(table: Table, release: Release) -> float:
    r"""Information loss of microaggregation in per cent, over the standardised numeric quasi-identifiers.

    .. math:: IL = 100 \, SSE / SST, \quad SSE = \sum_{il} (z_{il} - z'_{il})^2, \quad SST = \sum_{il} z_{il}^2

    (BRKGA paper, eq. 6, as a percentage). An interval is judged by its midpoint; constant columns, suppressed rows
    and missing cells are left out.
    """
    sse = sst = 0.0
    for column in _numeric_columns(table, release):
        sse += float(np.square((column.original - column.published) / column.spread).sum())
        sst += len(column.original) - 1
    return 100 * sse / sst if sst else np.nan


@metric("il2", title="IL2", better="lower")
def il2(table: Table, release: Release) -> float:
    r"""Mean absolute deviation of the numeric quasi-identifiers in units of :math:`\sqrt 2` standard deviations.

    .. math:: IL2 = \frac{1}{n p} \sum_{il} \frac{|x_{il} - x'_{il}|}{\sqrt 2 \, S_l}

    with the sample standard deviation :math:`S_l` of the originals (BRKGA paper, eq. 7; IL1s of sdcMicro, averaged).
    """
    total, count = 0.0, 0
    for column in _numeric_columns(table, release):
        total += float(np.abs(column.original - column.published).sum()) / (np.sqrt(2) * column.spread)
        count += len(column.original)
    return float(total / count) if count else np.nan


def _numeric_columns(table: Table, release: Release) -> Iterator[_Column]:
    """The numeric quasi-identifiers whose kept originals vary."""
    kept = ~release.suppressed
    for i, column in enumerate(table.columns):
        if column.values is None:
            continue
        original = column.values[table.codes[kept, i]]
        published = positions(release.cells[column.name])[release.groups.labels[kept]]
        present = ~(np.isnan(original) | np.isnan(published))
        if present.any() and np.ptp(original[present]) > 0:
            yield _Column(original[present], published[present])
