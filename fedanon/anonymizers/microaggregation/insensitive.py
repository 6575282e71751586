"""Insensitive microaggregation: groups cut from a total order of the domain, whatever the data.

Replacing one record then changes every group by at most one record (Domingo-Ferrer & Soria-Comas 2014): it leaves its
group and enters another, and each group between passes one record to the next. Methods such as MDAV have no such
order: one record can rearrange all groups.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.microaggregation.base import Labels
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.spans import points
from fedanon.data.table import Table

Order = Literal["curve", "corner"]
#: a value as a whole number of steps of its range; sums of such are exact
Steps = NDArray[np.int64]

STEPS = 2**32


def range_steps(table: Table) -> Steps:
    """The records as steps of the declared ranges, 0 .. STEPS - 1; all columns must be numeric and known."""
    low = np.array([column.attribute.low for column in table.columns])  # type: ignore[union-attr]
    width = np.array([column.attribute.width for column in table.columns])  # type: ignore[union-attr]
    share = np.clip((points(table) - low) / width, 0.0, 1.0)
    return np.asarray(np.minimum(np.rint(share * STEPS), STEPS - 1), dtype=np.int64)


def insensitive_groups(steps: Steps, k: int, order: Order) -> Labels:
    """Group of every record: each k in a row of the order, the last up to 2k - 1; their number follows from n and k."""
    count = max(len(steps) // k, 1)
    labels = np.empty(len(steps), dtype=np.int64)
    labels[total_order(steps, order)] = np.minimum(np.arange(len(steps)) // k, count - 1)
    return labels


def total_order(steps: Steps, order: Order) -> NDArray[np.int64]:
    """The records sorted; between records that differ, only their own values decide.

    'curve' follows the Z-order curve through the domain (Morton 1966), on which neighbours are near in all columns;
    'corner' sorts by the distance to the lower corner of the domain, as the paper has it.
    """
    if order == "curve":
        return np.argsort(_curve_keys(steps), kind="stable")
    distance = np.square(steps / STEPS).sum(axis=1)
    return np.lexsort((*steps.T[::-1], distance))


def _curve_keys(steps: Steps) -> NDArray[np.void]:
    """The bits of all columns, the highest of every column first, as texts of bytes that sort in that order."""
    digits = steps.astype(">u4").view(np.uint8).reshape(*steps.shape, 4)
    bits = np.unpackbits(digits, axis=2).transpose(0, 2, 1).reshape(len(steps), -1)
    packed = np.ascontiguousarray(np.packbits(bits, axis=1))
    return packed.view(f"S{packed.shape[1]}").ravel()


def group_shares(steps: Steps, groups: Groups) -> FloatArray:
    """The mean of every group in units of the ranges, 0 .. 1; the sums are exact, so the bound on one record is too."""
    return np.asarray(groups.total(steps) / groups.sizes[:, None] / STEPS)
