"""The plan: the recoding that all nodes share, and the final count that proves its claim."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Intervals, Nodes, as_written
from fedanon.data.groups import SUPPRESSED, Groups
from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.errors import UpdateRejectedError
from fedanon.joint.axes import Axis, bin_edges, bin_rows, list_codes
from fedanon.joint.regions import Router, read_router
from fedanon.release.release import Release
from fedanon.types import IntArray


@dataclass(frozen=True, eq=False)
class Plan:
    """What the server sends to the nodes when the regions are final.

    Parameters
    ----------
    router : the regions.
    of_region : class of every region; -1 for one that was divided, -2 - c for one whose rows are suppressed, where c is
        the class that would have to grow least to hold it.
    low, high : the box that each class publishes.
    people : number of people of the federation that each class is sure to hold.
    nodes : numbers of the nodes that were counted.
    """

    router: Router
    of_region: IntArray
    low: IntArray
    high: IntArray
    people: IntArray
    nodes: IntArray

    def to_arrays(self) -> list[NDArray[Any]]:
        """For the wire."""
        parts = (self.of_region, self.low, self.high, self.people, self.nodes)
        return [self.router.to_array(), *(part.astype(np.int32) for part in parts)]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], axes: Sequence[Axis]) -> Plan:
        """From the wire, checked."""
        if len(arrays) != 6 or any(array.dtype != np.int32 for array in arrays):
            raise UpdateRejectedError("the plan cannot be read")
        plan = cls(read_router(arrays[0], axes), *arrays[1:])
        shape, lengths = (plan.people.size, len(axes)), np.array([axis.n_bins for axis in axes])
        if plan.of_region.shape != (len(plan.router),) or plan.low.shape != shape or plan.high.shape != shape:
            raise UpdateRejectedError("the plan has wrong shapes")
        of_leaf = plan.of_region[plan.router.leaves]
        boxes = (plan.low >= 0).all() and (plan.low <= plan.high).all() and (plan.high < lengths).all()
        flat = plan.people.ndim == plan.nodes.ndim == 1
        named = np.where(of_leaf < 0, -2 - of_leaf, of_leaf)
        if not (boxes and flat and (named >= 0).all() and (named < shape[0]).all()):
            raise UpdateRejectedError("the plan names classes that it does not define")
        return plan

    @property
    def sha256(self) -> str:
        """Hash of the whole plan."""
        digest = hashlib.sha256()
        for array in self.to_arrays():
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def classify(self, bins: IntArray) -> IntArray:
        """Class of every row; negative where it is suppressed."""
        return self.of_region[self.router.route(bins)]

    def cells(self, attributes: Sequence[Numeric | Categorical]) -> dict[str, Cells]:
        """The cells that every class publishes: intervals and taxonomy nodes over its box."""
        boxes = ((a, _cells(a, self.low[:, i], self.high[:, i])) for i, a in enumerate(attributes))
        return {a.name: as_written(cells, a) for a, cells in boxes}


def _cells(attribute: Numeric | Categorical, low: IntArray, high: IntArray) -> Cells:
    """Cells over boxes; one that may hold missing values publishes everything, whatever the policy of a node."""
    if isinstance(attribute, Numeric):
        lowest, highest = (np.append(ends, np.nan) for ends in bin_edges(attribute))
        open_ = np.isnan(highest[high])
        starts, ends = np.where(open_, attribute.low, lowest[low]), np.where(open_, attribute.high, highest[high])
        return Intervals(starts, ends)
    tree = attribute.hierarchy
    nodes = tree.common_ancestor(low, high)
    missing = tree.codes.get(MISSING, tree.n_leaves)
    return Nodes(np.where((low <= missing) & (high >= missing), tree.root, nodes).astype(np.int32), tree)


@dataclass(frozen=True, eq=False)
class PlannedRegions:
    """A recoding in which new rows take the class of the region they lie in."""

    columnwise: ClassVar[bool] = False

    plan: Plan

    def apply(self, release: Release, table: Table) -> tuple[IntArray, Mapping[str, Cells]]:
        """Class of every row, and the cells of all classes."""
        table = list_codes(table)
        found = self.plan.classify(bin_rows(table))
        named = np.where(found < 0, -2 - found, found).astype(np.int32)
        return named, self.plan.cells(table.schema.quasi_identifiers)


def group_rows(plan: Plan, table: Table, k_local: int) -> tuple[Groups, NDArray[np.int64]]:
    """The groups of a node's rows and the class of each; groups of fewer than ``k_local`` people are suppressed."""
    bins = bin_rows(table)
    labels = plan.classify(bins)
    # rows outside the boxes were not counted: their node had no k_local people there, or the reference missed them
    low, high = plan.low[np.maximum(labels, 0)], plan.high[np.maximum(labels, 0)]
    outside = ((bins < low) | (bins > high)).any(axis=1)
    labels = np.where(outside | (labels < 0), SUPPRESSED, labels)
    classes = Groups.from_labels(labels)
    short = np.append(classes.count_people(table.persons) < k_local, False)
    kept = Groups.from_labels(np.where(short[classes.labels], SUPPRESSED, labels))
    return kept, np.unique(labels[~kept.suppressed])
