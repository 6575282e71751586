"""Record linkage: how many released records an attacker who holds the originals can match to their own original.

Records are linked one by one. Where pseudonyms show whole series, an attacker would link series and do better, so the
metrics do not apply; class sizes, which count people with equal series, do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.table import CodedColumn, Table
from fedanon.metrics.base import metric
from fedanon.metrics.distances import (
    Distances,
    raw_distances,
    record_distances,
    squared_raw_distances,
    standard_deviation,
    thesis_distances,
)
from fedanon.metrics.nearest import link_chances
from fedanon.metrics.published import positions
from fedanon.release.release import Release
from fedanon.types import FloatArray, IndexArray, IntArray


@metric("linkage_expected", title="Linked records", better="lower")
def linkage_expected(table: Table, release: Release) -> float:
    r"""Expected number of released records linked to their own original, the nearest being chosen.

    .. math:: \sum_r \frac{[o(r) \in N(r)]}{|N(r)|}

    where :math:`N(r)` are the originals nearest to the released record r by the distance of
    :func:`fedanon.metrics.distances.record_distances`, and one of them is chosen uniformly (thesis, section 6.1.3,
    after Jiang & Torra 2023; ties as in spec section 5). Suppressed rows are not linked, but their originals are
    candidates.
    """
    return np.nan if release.has_pseudonyms else link(table, release, record_distances).expected


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
    return np.nan if release.has_pseudonyms else link(table, release, record_distances).first_hits


@metric("linkage_thesis", title="Linked records, as in the thesis", better="lower")
def linkage_thesis(table: Table, release: Release) -> float:
    """:func:`linkage_first` with the thesis's whole-numbered midpoints (Appendix A of its specification)."""
    return np.nan if release.has_pseudonyms else link(table, release, thesis_distances).first_hits


@metric("linkage_raw_euclidean", title="Linked records, raw Euclidean", better="lower")
def linkage_raw_euclidean(table: Table, release: Release) -> float:
    """:func:`linkage_expected` by the Euclidean distance of raw numbers (thesis, 6.1.3); numeric tables only."""
    return _link_raw(table, release, squared_raw_distances)


@metric("linkage_raw_manhattan", title="Linked records, raw Manhattan", better="lower")
def linkage_raw_manhattan(table: Table, release: Release) -> float:
    """:func:`linkage_expected` by the Manhattan distance of raw numbers; numeric tables only."""
    return _link_raw(table, release, raw_distances)


def _link_raw(table: Table, release: Release, distances: Distances) -> float:
    if release.has_pseudonyms or not all(isinstance(column.attribute, Numeric) for column in table.columns):
        return np.nan
    return link(table, release, distances).expected


@metric("dld", title="DLD", better="lower")
def dld(table: Table, release: Release) -> float:
    """Share of the released records whose nearest original, by standardized numbers, is their own.

    Distance-based linkage disclosure (BRKGA paper, eq. 8): Euclidean distance over the numeric quasi-identifiers,
    both sides standardized by mean and standard deviation of the originals; expectation under a uniform choice
    among ties.
    """
    numeric = [i for i, c in enumerate(table.columns) if c.values is not None and np.ptp(table.codes[:, i]) > 0]
    rows = np.flatnonzero(~release.suppressed)
    if not numeric or not len(rows) or release.has_pseudonyms:
        return np.nan
    columns = [table.columns[i] for i in numeric]
    x = np.column_stack([c.values[table.codes[:, i]] for i, c in zip(numeric, columns, strict=True)])  # type: ignore[index]
    y = np.column_stack([positions(release.cells[c.name]) for c in columns])[release.groups.labels[rows]]
    spread = np.array([standard_deviation(column) for column in x.T])
    gap = np.array([c.attribute.width for c in columns if isinstance(c.attribute, Numeric)]) / spread
    return float(link_chances(x / spread, y / spread, rows, gap=np.square(gap)).mean())


def _share(count: float, release: Release) -> float:
    released = int((~release.suppressed).sum())
    return count / released if released else np.nan


# ---- Search for the originals nearest to every released record, on distinct released x distinct original rows ---

#: how many distances are held in memory at once
CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Links:
    """The outcome for every class of equal released records.

    Parameters
    ----------
    near : number of original rows nearest to the class.
    own : how many of them belong to the class.
    first_is_own : whether the first of them does.
    own_is_near : for every released row, in the order of the originals, whether its own original is one of them.
    """

    near: IndexArray
    own: IndexArray
    first_is_own: NDArray[np.bool_]
    own_is_near: NDArray[np.bool_]

    @property
    def expected(self) -> float:
        """Expected number of records linked to their own original, one of the nearest being chosen uniformly."""
        return float((self.own / self.near).sum())

    @property
    def first_hits(self) -> float:
        """Number of records linked to their own original, the first of the nearest being chosen."""
        return float(self.first_is_own.sum())


@dataclass(frozen=True, eq=False)
class Originals:
    """The distinct originals in lexicographic order, as the kernel walks them.

    Parameters
    ----------
    columns : the columns compared, those with few values first, so that common prefixes are long.
    starts : where the codes of each column begin when all are laid end to end, and where the last one ends.
    codes : one row per distinct original; codes counted from the column's start.
    shared : how many leading columns an original has in common with the one before.
    skip : for an original i and a column c, the next one that differs from it within the columns 0..c.
    rows : the groups of equal original rows, numbered like ``codes``.
    """

    columns: tuple[CodedColumn, ...]
    starts: IndexArray
    codes: IntArray
    shared: IndexArray
    skip: IndexArray
    rows: Groups

    @classmethod
    def from_table(cls, table: Table, columns: Sequence[int]) -> Originals:
        """The originals of a table by some of its columns."""
        order = sorted(columns, key=lambda i: table.columns[i].size)
        rows = Groups.equal_rows(table.codes[:, order])
        codes = table.codes[rows.first_rows][:, order]
        chosen = tuple(table.columns[i] for i in order)
        starts = np.concatenate([[0], np.cumsum([c.size for c in chosen])]).astype(np.int64)
        changed = np.ones(codes.shape, dtype=bool)
        changed[1:] = np.logical_or.accumulate(codes[1:] != codes[:-1], axis=1)
        laid_out = np.ascontiguousarray(codes + starts[:-1], dtype=np.int32)
        return cls(chosen, starts, laid_out, np.argmax(changed, axis=1), _next_change(changed), rows)


def _next_change(changed: NDArray[np.bool_]) -> IndexArray:
    """For every row and column the next row at which the column's prefix changes."""
    count, width = changed.shape
    skip = np.empty((count, width), dtype=np.int64)
    for c in range(width):
        changes = np.append(np.flatnonzero(changed[:, c]), count)
        skip[:, c] = changes[np.searchsorted(changes, np.arange(count), side="right")]
    return skip


def link(table: Table, release: Release, distances: Distances, columns: Sequence[int] | None = None) -> Links:
    """Link the released records to the rows of ``table`` by the sum of ``distances`` over some or all columns."""
    classes = release.classes
    chosen = range(len(table.columns)) if columns is None else columns
    if not chosen:  # nothing tells records apart
        everyone = np.ones(int(classes.sizes.sum()), dtype=bool)
        first_is_own = classes.labels[0] == np.arange(classes.count)
        return Links(np.full(classes.count, len(table)), classes.sizes, first_is_own, everyone)
    originals = Originals.from_table(table, chosen)
    step = max(1, CHUNK // int(originals.starts[-1]))
    near, own, first = np.zeros((3, classes.count), dtype=np.int64)
    members = _Members.from_groups(classes, originals.rows)
    is_near = []
    for start in range(0, classes.count, step):
        part = slice(start, min(start + step, classes.count))
        groups = release.groups.labels[classes.first_rows[part]]
        cells = [(release.cells[column.name].select(groups), column) for column in originals.columns]
        distance = np.ascontiguousarray(np.hstack([distances(cell, column) for cell, column in cells]))
        near[part], own[part], first[part], hit = _nearest(distance, originals, members.of_classes(part))
        is_near.append(hit)
    own_is_near = np.concatenate(is_near)[members.of_row] if is_near else np.zeros(0, dtype=bool)
    return Links(near, own, classes.labels[first] == np.arange(classes.count), own_is_near)


@dataclass(frozen=True, eq=False)
class _Members:
    """Which distinct originals the records of each class have, and how many of them; sorted by class.

    ``of_row`` is the number of every released row's original among them.
    """

    classes: IndexArray
    originals: IndexArray
    counts: IndexArray
    of_row: IndexArray

    @classmethod
    def from_groups(cls, classes: Groups, originals: Groups) -> _Members:
        kept = np.flatnonzero(~classes.suppressed)
        pairs = Groups.equal_rows(np.column_stack([classes.labels[kept], originals.labels[kept]]))
        rows = kept[pairs.first_rows]
        return cls(
            classes.labels[rows].astype(np.int64),
            originals.labels[rows].astype(np.int64),
            pairs.sizes,
            pairs.labels.astype(np.int64),
        )

    def of_classes(self, part: slice) -> _Members:
        """The members of a range of classes, numbered from 0."""
        here = slice(*np.searchsorted(self.classes, [part.start, part.stop]))
        return _Members(self.classes[here] - part.start, self.originals[here], self.counts[here], self.of_row)


def _nearest(
    distance: FloatArray, originals: Originals, members: _Members
) -> tuple[IndexArray, IndexArray, IndexArray, NDArray[np.bool_]]:
    """Number of nearest originals, how many are own, and the first, for every row of ``distance``; whose own it is."""
    own = _member_distances(distance, originals, members)
    # nothing farther than a record's own original can be nearest, and own originals mostly are: a tight first bound
    bound = np.full(len(distance), np.inf)
    np.minimum.at(bound, members.classes, own)
    if (
        len(own) == len(bound)
        and not own.any()
        and (np.add.reduceat(distance == 0, originals.starts[:-1], axis=1) == 1).all()
    ):
        return *_themselves(originals, members), np.ones(len(own), dtype=bool)
    from fedanon.metrics._linkage import nearest_originals

    least = np.minimum.reduceat(distance, originals.starts[:-1], axis=1)
    rest = np.zeros((len(distance), least.shape[1] + 1))
    rest[:, :-1] = np.cumsum(least[:, ::-1], axis=1)[:, ::-1]
    rows = originals.rows
    near, first, limit = nearest_originals(
        distance, rest, bound, originals.codes, originals.shared, originals.skip, rows.sizes, rows.first_rows
    )
    is_near = own <= limit[members.classes]
    hits = np.where(is_near, members.counts, 0)
    return near, np.bincount(members.classes, hits, minlength=len(distance)).astype(np.int64), first, is_near


def _themselves(originals: Originals, members: _Members) -> tuple[IndexArray, IndexArray, IndexArray]:
    """:func:`_nearest` of exact rows: one distinct original is at distance 0, and every record of a class has it."""
    mine = originals.rows
    return mine.sizes[members.originals], members.counts, mine.first_rows[members.originals]


def _member_distances(distance: FloatArray, originals: Originals, members: _Members) -> FloatArray:
    """Distance of every class to the originals of its own records."""
    total = np.zeros(len(members.classes))
    for codes in originals.codes[members.originals].T:
        total += distance[members.classes, codes]
    return total
