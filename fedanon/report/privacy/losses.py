"""What every quasi-identifier lost, from the published cells and, if they are at hand, from the originals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes, is_suppressed
from fedanon.data.hierarchy import FloatArray
from fedanon.data.schema import Categorical, Numeric
from fedanon.metrics.information_loss import ncp_by_column
from fedanon.metrics.truthfulness import truthfulness_by_column
from fedanon.report.privacy.evidence import Evidence

#: upper ends of the bins of loss; the first is that of exact values
BINS = np.concatenate([[0.0], np.linspace(0.1, 1.0, 10)])


@dataclass(frozen=True)
class ColumnLoss:
    """Of one quasi-identifier.

    Parameters
    ----------
    column : its name.
    loss : NCP of the published cells, from 0 (exact) to 1 (nothing left).
    exact : share of the rows with an exact value.
    hidden : share of the rows of which the column says nothing.
    by_bin : share of the rows in every bin of loss.
    measured : NCP from the originals; None without them.
    true : share of the cells that hold the original value; None without the originals.
    """

    column: str
    loss: float
    exact: float
    hidden: float
    by_bin: tuple[float, ...]
    measured: float | None = None
    true: float | None = None


def column_losses(evidence: Evidence) -> list[ColumnLoss]:
    """Of every quasi-identifier, in the order of the schema."""
    table, release = evidence.matched, evidence.release
    measured = ncp_by_column(table, release) if table is not None and release is not None else {}
    true = truthfulness_by_column(table, release) if table is not None and release is not None else {}
    return [
        _column(evidence, attribute, measured.get(attribute.name), true.get(attribute.name))
        for attribute in evidence.schema.quasi_identifiers
    ]


def _column(
    evidence: Evidence, attribute: Numeric | Categorical, measured: float | None, true: float | None
) -> ColumnLoss:
    cells, classes = evidence.cells[attribute.name], evidence.released.classes
    by_class = np.append(_loss(cells, attribute), 1.0)
    hidden = np.append(is_suppressed(cells, attribute), True)
    # a suppressed row, whose label is -1, lost everything
    loss = by_class[classes.labels]
    bins = np.bincount(np.searchsorted(BINS, np.round(loss, 9)), minlength=len(BINS)) / len(loss)
    return ColumnLoss(
        column=attribute.name,
        loss=float(loss.mean()),
        exact=float((loss == 0).mean()),
        hidden=float(hidden[classes.labels].mean()),
        by_bin=tuple(bins.tolist()),
        measured=measured,
        true=true,
    )


def _loss(cells: Cells, attribute: Numeric | Categorical) -> FloatArray:
    """Of every cell: leaves of a node over all leaves, length of an interval over the declared range."""
    if isinstance(cells, Nodes):
        return cells.hierarchy.leaf_loss[cells.nodes]
    assert isinstance(cells, Intervals)
    assert isinstance(attribute, Numeric)
    return np.clip(np.nan_to_num((cells.high - cells.low) / attribute.width, nan=0.0), 0.0, 1.0)
