"""Loss of categorical columns: changed cells, contingency tables and entropy; and cells that became missing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes, is_suppressed
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.published import leaf_codes
from fedanon.release.release import Release
from fedanon.types import AnyArray, BoolArray, IndexArray


class CategoryPair(NamedTuple):
    """One column: the original and the published category of every row (-1 where suppressed)."""

    original: IndexArray
    published: IndexArray


class TableDistance(NamedTuple):
    """Two contingency tables compared.

    Parameters
    ----------
    ut : mean absolute difference of the counts over all cells.
    ut1 : mean relative difference in percent, over the cells that are not empty in the original.
    new_cells : cells that ``ut1`` cannot judge: empty in the original, filled in the release.
    """

    ut: float
    ut1: float
    new_cells: int


def category_pairs(table: Table, release: Release) -> list[CategoryPair]:
    """Return the categorical quasi-identifiers; a category is a node of the published taxonomy."""
    pairs = []
    for i, column in enumerate(table.columns):
        cells = release.cells[column.name]
        if column.values is None and isinstance(cells, Nodes):
            original = leaf_codes(column, cells.hierarchy)[table.codes[:, i]].astype(np.int64)
            # a value the published taxonomy does not list is numbered after all nodes
            original = np.where(original < 0, len(cells.hierarchy.labels) + table.codes[:, i], original)
            published = np.append(cells.nodes, np.int32(-1))[release.groups.labels].astype(np.int64)
            pairs.append(CategoryPair(original, published))
    return pairs


def contingency_distance(first: CategoryPair, second: CategoryPair) -> TableDistance:
    r"""Return the distance of the two-way tables of two columns (Morais 2022, eq. 5.3 and 5.4).

    .. math::
        UT = \frac{1}{C_1 C_2} \sum_{hq} |T_{hq} - T'_{hq}|, \qquad
        UT1 = \frac{100}{|\{hq : T_{hq} > 0\}|} \sum_{hq : T_{hq} > 0} \frac{|T_{hq} - T'_{hq}|}{T_{hq}}

    over the categories that occur in the original or in the release. Rows of which nothing is published count only in
    the original table.
    """
    kept = first.published >= 0
    rows, n_rows = _numbered(first.original, first.published[kept])
    columns, n_columns = _numbered(second.original, second.published[kept])
    cells = rows * n_columns + columns
    n = len(first.original)
    used, inverse = np.unique(cells, return_inverse=True)
    before, after = (np.bincount(part, minlength=len(used)) for part in (inverse[:n], inverse[n:]))
    difference, filled = np.abs(before - after), before > 0
    return TableDistance(
        float(difference.sum() / (n_rows * n_columns)),
        float(100 * (difference[filled] / before[filled]).mean()),
        int((~filled).sum()),
    )


def _numbered(*parts: AnyArray) -> tuple[IndexArray, int]:
    """Concatenate the parts, number them 0.. by category, and return the number of categories as well."""
    categories, codes = np.unique(np.concatenate(parts), return_inverse=True)
    return codes, len(categories)


@metric("categories_changed", title="Changed categories", better="lower")
def categories_changed(table: Table, release: Release) -> float:
    r"""Number of categorical quasi-identifying cells whose published category is not the original.

    .. math:: PI = \sum_{ip} [c_{ip} \ne c'_{ip}]

    (Morais 2022, eq. 5.2.) Generalized and suppressed cells count; ``minimal_distortion`` counts numeric cells as well.
    """
    pairs = category_pairs(table, release)
    return float(sum(int((p.original != p.published).sum()) for p in pairs)) if pairs else np.nan


@metric("contingency_ut", title="Contingency distance UT", better="lower")
def contingency_ut(table: Table, release: Release) -> float:
    """Mean absolute difference of the counts of two-way tables, over all pairs of categorical columns."""
    found = _distances(table, release)
    return float(np.mean([distance.ut for distance in found])) if found else np.nan


@metric("contingency_ut1", title="Contingency distance UT1 (%)", better="lower")
def contingency_ut1(table: Table, release: Release) -> float:
    """Mean relative difference in percent of the filled cells of two-way tables, over all pairs of columns."""
    found = _distances(table, release)
    return float(np.mean([distance.ut1 for distance in found])) if found else np.nan


@metric("contingency_new_cells", title="Contingency cells made", better="lower")
def contingency_new_cells(table: Table, release: Release) -> float:
    """Number of cells of two-way tables that are empty in the original and filled in the release; UT1 omits them."""
    found = _distances(table, release)
    return float(sum(distance.new_cells for distance in found)) if found else np.nan


def _distances(table: Table, release: Release) -> list[TableDistance]:
    return [contingency_distance(a, b) for a, b in combinations(category_pairs(table, release), 2)]


# ---- entropy -------------------------------------------------------------------------------------


def entropy(categories: AnyArray) -> float:
    r"""Entropy in nats, :math:`-\sum_c (f_c / N) \ln(f_c / N)` (Morais 2022, eq. 5.7)."""
    shares = np.unique(categories, return_counts=True)[1] / max(len(categories), 1)
    return float(-(shares * np.log(shares)).sum() + 0.0)


def conditional_entropy(original: AnyArray, published: AnyArray) -> float:
    r"""Entropy of the original category given the published one, in nats.

    .. math:: H(X | Y) = \sum_{xy} \frac{n_{xy}}{N} \ln \frac{n_y}{n_{xy}}

    0 if the published category determines the original, H(X) if the two are independent. It is what PRAM loses
    (Domingo-Ferrer & Torra 2001, from the data instead of the transition matrix); eq. 5.7 of Morais 2022 prints H(Y).
    """
    joint = Groups.equal_rows(np.column_stack([published, original]))
    published_counts = np.unique(published, return_inverse=True, return_counts=True)
    of_joint = published_counts[2][published_counts[1]][joint.first_rows]
    return float((joint.sizes / max(len(original), 1) * np.log(of_joint / joint.sizes)).sum())


@metric("conditional_entropy", title="Entropy given the release", better="lower")
def mean_conditional_entropy(table: Table, release: Release) -> float:
    """Entropy of the original category given the published one in nats, averaged over categorical columns."""
    return _mean(table, release, lambda pair: conditional_entropy(pair.original, pair.published))


@metric("released_entropy", title="Entropy of the release", better="neither")
def released_entropy(table: Table, release: Release) -> float:
    """Entropy of the published categories in nats, averaged over categorical columns.

    Morais 2022, eq. 5.7 as printed: a description of the release, not a loss, since the original does not enter.
    """
    return _mean(table, release, lambda pair: entropy(pair.published))


def _mean(table: Table, release: Release, function: Callable[[CategoryPair], float]) -> float:
    """Average over the categorical columns, for the published rows."""
    kept = ~release.suppressed
    pairs = category_pairs(table, release)
    if not pairs or not kept.any():
        return np.nan
    return float(np.mean([function(CategoryPair(pair.original[kept], pair.published[kept])) for pair in pairs]))


# ---- missing values ------------------------------------------------------------------------------


def says_nothing(cells: Cells, attribute: Numeric | Categorical) -> BoolArray:
    """Mark the cells that say nothing: empty, the root of a taxonomy, or the whole declared range."""
    return is_suppressed(cells, attribute) | _is_empty(cells)


def _is_empty(cells: Cells) -> BoolArray:
    if isinstance(cells, Nodes):
        return np.asarray(cells.nodes == cells.hierarchy.codes.get(MISSING, -1))
    return np.isnan(cells.low if isinstance(cells, Intervals) else cells.values)


@metric("new_missing", title="New missing values", better="lower")
def new_missing(table: Table, release: Release) -> float:
    r"""Number of quasi-identifying cells that say nothing in the release and were not missing in the table.

    .. math:: M = \sum_{ip} [x_{ip} \text{ present} \wedge y_{ip} \text{ missing}]

    (Morais 2022, eq. 5.6.) Cells of suppressed rows count; an interval or node that still says something does not.
    """
    total = 0
    for i, column in enumerate(table.columns):
        present = table.codes[:, i] != column.size - 1 if column.has_missing else np.ones(len(table), dtype=bool)
        # suppressed rows have label -1 and take the last entry
        hidden = np.append(says_nothing(release.cells[column.name], column.attribute), True)[release.groups.labels]
        total += int((present & hidden).sum())
    return float(total)
