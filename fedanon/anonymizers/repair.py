"""Repair: merge groups that fall short of a privacy model with their nearest neighbour until all hold."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.spans import points, span_table
from fedanon.data.table import Table


class GroupModel(Protocol):
    """The part of a privacy model a repair needs."""

    def holds(self, table: Table, groups: Groups) -> NDArray[np.bool_]:
        """Which groups are fine as they are."""


def merge_short_groups(table: Table, groups: Groups, model: GroupModel) -> Groups:
    """Merge every group for which ``model`` does not hold into the group whose joint cell loses least.

    Methods count rows; where persons own several rows, or for a stronger model, a group may fall short. Each pass
    joins every short group with its nearest, and passes repeat until all hold or one group is left. A pass costs
    O(short x groups) and at least halves the short groups.
    """
    while groups.count > 1:
        short = np.flatnonzero(~model.holds(table, groups))
        if short.size == 0:
            break
        groups = _join_nearest(table, groups, short)
    return groups


def _join_nearest(table: Table, groups: Groups, short: NDArray[np.int64]) -> Groups:
    from fedanon.kernels.nearest import joint_loss

    rows, spans = points(table), span_table(table.columns)
    low, high = groups.minimum(rows), groups.maximum(rows)
    target = np.arange(groups.count)
    touched = np.zeros(groups.count, dtype=bool)
    for source in short:
        if touched[source]:
            continue  # another short group has joined it in this pass; it is judged again in the next
        loss = joint_loss(spans, low, high, source)
        loss[source] = np.inf
        nearest = target[int(np.argmin(loss))]
        target[source] = nearest
        touched[[source, nearest]] = True
    labels = np.append(target, -1)[groups.labels]
    return Groups.of(labels)
