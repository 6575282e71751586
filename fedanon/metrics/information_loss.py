"""Information loss of generalization: NCP from the originals and from the published cells, distortion, suppression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fedanon.data.cells import Nodes, Numbers, cell_losses
from fedanon.data.groups import Groups
from fedanon.data.schema import FreeText
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.published import covers, exactly, positions
from fedanon.release.release import Release
from fedanon.release.view import PublishedView
from fedanon.types import BoolArray, FloatArray


@metric("ncp", title="NCP", better="lower")
def ncp(table: Table, release: Release) -> float:
    r"""Normalized certainty penalty, from the original values of the rows published together.

    .. math:: NCP = \frac{1}{n q} \sum_e |e| \sum_i NCP_i(e)

    where :math:`NCP_i(e)` is (max - min) / declared range for a numeric attribute and, for a categorical one, 0 if
    the lowest common ancestor of the originals is a leaf, else leaves(LCA) / leaves(root) (thesis, eq. 6.1-6.4; Xu
    et al. 2006). A suppressed row counts as 1.
    """
    return _mean(ncp_by_column(table, release))


@metric("ncp_all_columns", title="NCP over all columns", better="lower")
def ncp_all_columns(table: Table, release: Release) -> float:
    """:func:`ncp` divided among all columns of the table instead of its quasi-identifiers.

    The thesis's published losses of DAS are of this kind; kept to compare with them, since it looks small where few
    of many columns are generalized.
    """
    return ncp(table, release) * len(table.columns) / len(table.schema.names)


@metric("ncp_published", title="NCP of the published values", better="lower")
def ncp_published(table: Table, release: Release) -> float:
    """Normalized certainty penalty of the published cells themselves, true or not.

    A node costs leaves(node) / leaves(root), 0 for a leaf; an interval its length over the declared range; a single
    number the extent of the originals it stands for over the range (thesis, Appendix A). A suppressed row counts as 1.
    It differs from ``ncp`` where a method publishes values that do not cover the originals, or cover more than them.
    """
    return _mean(ncp_published_by_column(table, release))


def ncp_by_column(table: Table, release: Release) -> dict[str, float]:
    """:func:`ncp` of every quasi-identifier."""
    extent = _extent_loss(table, release)
    return {c.name: float(_with_suppressed(extent[:, i], release).mean()) for i, c in enumerate(table.columns)}


def ncp_published_by_column(table: Table, release: Release) -> dict[str, float]:
    """:func:`ncp_published` of every quasi-identifier."""
    extent = _extent_loss(table, release)
    losses = {}
    for i, column in enumerate(table.columns):
        single = _is_single_number(release, column.name)
        loss = np.where(single, _with_suppressed(extent[:, i], release), published_losses(release, column.name))
        losses[column.name] = float(loss.mean())
    return losses


def _is_single_number(view: PublishedView, name: str) -> BoolArray:
    """The rows of which one number is published; in a file it cannot be told from an interval of one point."""
    cells = view.cells[name]
    if isinstance(cells, Nodes):
        return np.zeros(len(view), dtype=bool)
    single = np.ones(len(cells), dtype=bool) if isinstance(cells, Numbers) else cells.low == cells.high
    return np.append(single, False)[np.where(view.suppressed, len(cells), view.groups.labels)]


def published_losses(view: PublishedView, name: str) -> FloatArray:
    """Loss of what is published of every row in one quasi-identifier, without the originals; a suppressed row lost all.

    A single number costs nothing here: what it stands for cannot be seen.
    """
    attribute = view.schema[name]
    assert not isinstance(attribute, FreeText)
    losses = cell_losses(view.cells[name], attribute)
    return _with_suppressed(losses[view.groups.labels[~view.suppressed]], view)


def _extent_loss(table: Table, release: Release) -> FloatArray:
    """Loss of the smallest cells over the originals generalized together with each kept row, column by column."""
    kept = ~release.suppressed
    loss = np.empty((int(kept.sum()), len(table.columns)))
    for i, column in enumerate(table.columns):
        groups = Groups.from_labels(release.groups_of(column.name).labels)  # a recoded release may have empty groups
        low, high = groups.minimum(table.codes[:, i]), groups.maximum(table.codes[:, i])
        loss[:, i] = column.loss(low, high)[groups.labels[kept]]
    return loss


def _with_suppressed(loss: FloatArray, view: PublishedView) -> FloatArray:
    """The loss of every row, given that of the published ones: the suppressed ones are at full loss."""
    losses = np.ones(len(view))
    losses[~view.suppressed] = loss
    return losses


def _mean(by_column: dict[str, float]) -> float:
    return float(np.mean(list(by_column.values()))) if by_column else np.nan


@metric("minimal_distortion", title="Minimal distortion", better="lower")
def minimal_distortion(table: Table, release: Release) -> float:
    """Number of cells whose published value is not the exact original.

    One unit for every quasi-identifying cell that is generalized, changed or suppressed (Samarati 2001; thesis,
    section on metrics of general purpose).
    """
    kept = ~release.suppressed
    same = 0
    for i, column in enumerate(table.columns):
        cells = release.cells[column.name].select(release.groups.labels[kept])
        same += int(exactly(cells, column, table.codes[kept, i]).sum())
    return float(table.codes.size - same)


@metric("minimal_distortion_share", title="Distorted cells", better="lower")
def minimal_distortion_share(table: Table, release: Release) -> float:
    """Share of the quasi-identifying cells whose published value is not the exact original."""
    return minimal_distortion(table, release) / table.codes.size if table.codes.size else np.nan


@metric("suppressed_share", title="Suppressed rows", better="lower")
def suppressed_share(table: Table, release: Release) -> float:
    """Share of the rows of which nothing is published."""
    return float(release.suppressed.sum() / len(table))


# ---- Truthfulness: whether what is published is so -----------------------------------------------


@metric("truthfulness", title="True cells", better="higher")
def truthfulness(table: Table, release: Release) -> float:
    """Share of the published quasi-identifying cells that hold the original value.

    An interval is true if the value lies in it, a node if the value is a leaf below it, a number if it is the value.
    Generalization is truthful (1.0); means, noise and the thesis's centroids are not.
    """
    by_column = truthfulness_by_column(table, release)
    return float(np.mean(list(by_column.values()))) if by_column else np.nan


def truthfulness_by_column(table: Table, release: Release) -> dict[str, float]:
    """:func:`truthfulness` of every quasi-identifier; empty if nothing is published."""
    kept = ~release.suppressed
    if not kept.any():
        return {}
    labels = release.groups.labels[kept]
    return {
        column.name: float(covers(release.cells[column.name].select(labels), column, table.codes[kept, i]).mean())
        for i, column in enumerate(table.columns)
    }


# ---- Information loss of numbers -----------------------------------------------------------------


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
    r"""Information loss of microaggregation in per cent, over the standardized numeric quasi-identifiers.

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
