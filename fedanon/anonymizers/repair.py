"""Repair: merge groups that fall short of a privacy model with their nearest neighbour until all hold."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.spans import SpanTable, points, span_table
from fedanon.data.table import Table


class GroupModel(Protocol):
    """The part of a privacy model a repair needs."""

    def holds(self, table: Table, groups: Groups) -> NDArray[np.bool_]:
        """Which groups are fine as they are."""


def merge_short_groups(table: Table, groups: Groups, model: GroupModel) -> Groups:
    """Merge every group for which ``model`` does not hold into the group whose joint cell loses least.

    Methods count rows; where persons own several rows, or for a stronger model, a group may fall short. One pass
    joins each short group with its nearest; passes repeat until all hold or one group is left. O(short x groups).
    """
    while groups.count > 1:
        short = np.flatnonzero(~model.holds(table, groups))
        if short.size == 0:
            break
        groups = _merge(groups, _nearest_of(table, groups, int(short[0])))
    return groups


def _merge(groups: Groups, pair: tuple[int, int]) -> Groups:
    source, target = pair
    return Groups.of(np.where(groups.labels == source, target, groups.labels))


def _nearest_of(table: Table, groups: Groups, source: int) -> tuple[int, int]:
    from fedanon.kernels.nearest import joint_loss

    rows = points(table)
    low, high = groups.minimum(rows), groups.maximum(rows)
    spans: SpanTable = span_table(table.columns)
    loss = joint_loss(spans, low, high, source)
    loss[source] = np.inf
    return source, int(np.argmin(loss))
