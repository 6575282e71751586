"""Which record of the original a released row can show, by what it says: for files whose rows are in random order.

A row can show a record whose quasi-identifiers lie in its cells and whose other published columns are equal. Numbers
about a release depend on the class of a record alone, so a match is certain if every record has one class it can be in.
It means nothing where a method changes values: a row may then fit the record of somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.table import Table, texts
from fedanon.errors import ConfigError
from fedanon.metrics.published import covers
from fedanon.release.view import FileView
from fedanon.types import BoolArray, IndexArray

#: how many pairs of records and classes are compared at once, and at most
CHUNK, MOST_PAIRS = 4_000_000, 1_000_000_000


class RowMatch(NamedTuple):
    """A way to match the rows of a file with records.

    Parameters
    ----------
    rows : the released row of every record; None where only the class of some records is open.
    """

    rows: IndexArray | None

    @property
    def certain(self) -> bool:
        """Whether no other way gives a record another class."""
        return self.rows is not None


class _Edges(NamedTuple):
    """Which kinds of records fit which slots; a slot is a class and the values of its other columns.

    Parameters
    ----------
    kind, slot : one entry per fit.
    supply : number of records of every kind.
    demand : number of rows of every slot.
    """

    kind: IndexArray
    slot: IndexArray
    supply: IndexArray
    demand: IndexArray


def match_rows(view: FileView, table: Table) -> RowMatch | None:
    """Match the rows of a file with the records of ``table`` by content; None if there is no way to.

    ``view`` holds all published columns.
    """
    if len(view) != len(table):
        return None
    shown = np.flatnonzero(~view.suppressed)
    others, released = _other_values(view, table, shown)
    size = int(max(others.max(initial=-1), released.max(initial=-1))) + 1
    left = np.bincount(others, minlength=size) - np.bincount(released, minlength=size)
    if (left < 0).any():
        return None
    kinds = Groups.equal_rows(np.column_stack([others, table.codes]))
    slots = Groups.equal_rows(np.column_stack([released, view.classes.labels[shown]]))
    hidden = np.flatnonzero(left)  # a slot of suppressed rows for every combination of other values
    if _pairs(others[kinds.first_rows], released[slots.first_rows]) > MOST_PAIRS:
        return RowMatch(None)
    edges = _fits(view, table, shown, kinds, slots, others, released, hidden, left)
    solved = _propagate(edges)
    if solved is None:
        return None
    degree = np.bincount(solved.kind, minlength=kinds.count)
    if (degree > 1).any():
        return RowMatch(None) if _is_feasible(solved) else None
    slot_of_kind = np.empty(kinds.count, dtype=np.int64)
    slot_of_kind[solved.kind] = solved.slot
    return RowMatch(_assigned(slot_of_kind[kinds.labels], shown, slots, view.suppressed))


def _other_values(view: FileView, table: Table, shown: IndexArray) -> tuple[IndexArray, IndexArray]:
    """A number for the published values beside the quasi-identifiers, of every record and every row shown."""
    quasi = {column.name for column in table.columns}
    names = [name for name in table.schema.published if name in view.frame and name not in quasi]
    codes = [
        _joint_codes(table.frame[n], view.frame[n].iloc[shown], isinstance(table.schema[n], Numeric)) for n in names
    ]
    stacked = np.column_stack(codes) if codes else np.zeros((len(table) + len(shown), 1), dtype=np.int64)
    labels = Groups.equal_rows(stacked).labels.astype(np.int64)
    return labels[: len(table)], labels[len(table) :]


def _joint_codes(original: pd.Series[Any], released: pd.Series[Any], numeric: bool) -> IndexArray:
    """Equal numbers for equal values of a column, missing ones included; numbers are compared as such."""
    both = [pd.Series(column.to_numpy(dtype=object)) for column in (texts(original), released)]
    if numeric or pd.api.types.is_numeric_dtype(original):
        values = [pd.to_numeric(column, errors="coerce") for column in both]
        # text among numbers, such as a token for missing, is compared as text
        both = [value.astype(object).where(value.notna(), column) for value, column in zip(values, both, strict=True)]
    return np.asarray(pd.factorize(pd.concat(both, ignore_index=True))[0], dtype=np.int64)


def _pairs(others: IndexArray, released: IndexArray) -> int:
    size = max(others.max(initial=-1), released.max(initial=-1)) + 1
    return int((np.bincount(others, minlength=size) * np.bincount(released, minlength=size)).sum())


def _fits(
    view: FileView,
    table: Table,
    shown: IndexArray,
    kinds: Groups,
    slots: Groups,
    others: IndexArray,
    released: IndexArray,
    hidden: IndexArray,
    left: IndexArray,
) -> _Edges:
    """All fits; suppressed rows fit every record with the values that are left over."""
    first_record, first_row = kinds.first_rows, shown[slots.first_rows]
    group_of_slot = view.groups.labels[first_row]
    found_kinds, found_slots = [], []
    for kind, slot in _joined(others[first_record], released[slots.first_rows]):
        for i, column in enumerate(table.columns):
            cells = view.cells[column.name].select(group_of_slot[slot])
            fit = covers(cells, column, table.codes[first_record[kind], i])
            kind, slot = kind[fit], slot[fit]
        found_kinds.append(kind)
        found_slots.append(slot)
    suppressed = np.full(len(left), -1, dtype=np.int64)
    suppressed[hidden] = slots.count + np.arange(len(hidden))
    of_kind = suppressed[others[first_record]]
    free = np.flatnonzero(of_kind >= 0)
    return _Edges(
        np.concatenate([np.empty(0, dtype=np.int64), *found_kinds, free]),
        np.concatenate([np.empty(0, dtype=np.int64), *found_slots, of_kind[free]]),
        kinds.sizes,
        np.concatenate([slots.sizes, left[hidden]]),
    )


def _joined(others: IndexArray, released: IndexArray) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Pairs of a kind and a slot with the same other values, a bounded number at a time."""
    by_value = np.argsort(released, kind="stable")
    begin = np.searchsorted(released[by_value], others, side="left")
    count = np.searchsorted(released[by_value], others, side="right") - begin
    ends = np.cumsum(count)
    start = 0
    while start < len(others):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + CHUNK, side="right")), start + 1)
        kind = np.repeat(np.arange(start, stop), count[start:stop])
        within = np.arange(len(kind)) - np.repeat(ends[start:stop] - count[start:stop] - done, count[start:stop])
        yield kind, by_value[begin[kind] + within]
        start = stop


def _propagate(edges: _Edges) -> _Edges | None:
    """Drop fits that no matching can use, as far as counting shows it; None if some record or row is left over."""
    kind, slot, supply, demand = edges
    while True:
        degree = np.bincount(kind, minlength=len(supply))
        if (degree == 0).any():
            return None
        single = degree[kind] == 1
        forced = np.bincount(slot[single], supply[kind[single]], minlength=len(demand))
        possible = np.bincount(slot, supply[kind], minlength=len(demand))
        if (forced > demand).any() or (possible < demand).any():
            return None
        # a slot that is full takes nobody else; one that needs all it can get takes them all
        needs_all = (possible == demand)[slot]
        claimed = np.zeros(len(supply), dtype=bool)
        claimed[kind[needs_all]] = True
        keep = (single | (forced < demand)[slot]) & (needs_all | ~claimed[kind])
        if keep.all():
            return _Edges(kind, slot, supply, demand)
        kind, slot = kind[keep], slot[keep]


def _is_feasible(edges: _Edges) -> bool:
    """Whether all records can be matched: the largest flow from the kinds to the slots takes them all."""
    try:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import maximum_flow
    except ModuleNotFoundError:
        raise ConfigError(
            "Rows that fit several records are matched with scipy: pip install 'fedanon[harness]', or give --row-key."
        ) from None

    kinds, slots = len(edges.supply), len(edges.demand)
    source, sink = kinds + slots, kinds + slots + 1
    head = np.concatenate([np.full(kinds, source), edges.kind, kinds + np.arange(slots)])
    tail = np.concatenate([np.arange(kinds), kinds + edges.slot, np.full(slots, sink)])
    most = np.concatenate([edges.supply, edges.supply[edges.kind], edges.demand]).astype(np.int32)
    network = coo_array((most, (head, tail)), shape=(sink + 1, sink + 1)).tocsr()
    network.indices, network.indptr = network.indices.astype(np.int32), network.indptr.astype(np.int32)
    return bool(maximum_flow(network, source, sink).flow_value == edges.supply.sum())


def _assigned(slot_of_record: IndexArray, shown: IndexArray, slots: Groups, suppressed: BoolArray) -> IndexArray:
    """The released row of every record, given its slot; which of the equal rows of a slot does not matter."""
    rows = np.concatenate([shown[slots.order], np.flatnonzero(suppressed)])
    found = np.empty(len(slot_of_record), dtype=np.int64)
    # slots of suppressed rows have the highest numbers, and their rows come last
    found[np.argsort(slot_of_record, kind="stable")] = rows
    return found
