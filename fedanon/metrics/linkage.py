"""Record linkage: how many released records an attacker who holds the originals can match to their own original."""

from __future__ import annotations

import numpy as np

from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.distances import euclidean_distances, record_distances, thesis_distances
from fedanon.metrics.nearest import link


@metric("linkage_expected", title="Linked records", better="lower")
def linkage_expected(table: Table, release: Release) -> float:
    r"""Expected number of released records linked to their own original, the nearest being chosen.

    .. math:: \sum_r \frac{[o(r) \in N(r)]}{|N(r)|}

    where :math:`N(r)` are the originals nearest to the released record r by the distance of
    :func:`fedanon.metrics.distances.record_distances`, and one of them is chosen uniformly (thesis, section 6.1.3,
    after Jiang & Torra 2023; ties as in spec section 5). Suppressed rows are not linked, but their originals are
    candidates.
    """
    return link(table, release, record_distances).expected


@metric("linkage_expected_share", title="Linked records, share", better="lower")
def linkage_expected_share(table: Table, release: Release) -> float:
    """:func:`linkage_expected` as a share of the released records."""
    return _share(linkage_expected(table, release), release)


@metric("linkage_first", title="Linked records, first of ties", better="lower")
def linkage_first(table: Table, release: Release) -> float:
    """Number of released records linked to their own original, the first row of the nearest being chosen.

    At most one record of every class can be hit, so it flatters large classes; :func:`linkage_expected` does not
    depend on the order of the rows.
    """
    return link(table, release, record_distances).first_hits


@metric("linkage_thesis", title="Linked records, as in the thesis", better="lower")
def linkage_thesis(table: Table, release: Release) -> float:
    """:func:`linkage_first` with the thesis's whole-numbered midpoints (Appendix A of its specification)."""
    return link(table, release, thesis_distances).first_hits


@metric("dld", title="DLD", better="lower")
def dld(table: Table, release: Release) -> float:
    """Share of the released records whose nearest original, by standardised numbers, is their own.

    Distance-based linkage disclosure (BRKGA paper, eq. 8): Euclidean distance over the numeric quasi-identifiers,
    both sides standardised by mean and standard deviation of the originals; expectation under a uniform choice
    among ties.
    """
    numeric = [i for i, c in enumerate(table.columns) if c.values is not None and np.ptp(table.codes[:, i]) > 0]
    if not numeric:
        return np.nan
    return _share(link(table, release, euclidean_distances(table), numeric).expected, release)


def _share(count: float, release: Release) -> float:
    released = int((~release.suppressed).sum())
    return count / released if released else np.nan
