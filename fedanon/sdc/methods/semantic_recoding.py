"""Semantic recoding: the records of a rare key combination take the values of the nearest one."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import refuse_few_people
from fedanon.data.cells import Cells, Intervals, Nodes, Numbers
from fedanon.data.groups import Groups
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.fields import parameter
from fedanon.privacy.base import Claim
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.sdc.methods.base import Columns
from fedanon.sdc.methods.keys import ROUNDING, KeyMethod, keys_of
from fedanon.types import BoolArray, FloatArray, IntArray, Rng

#: from the number of a combination to its distances to all
Distances = Callable[[int], FloatArray]


@ANONYMIZERS.register("semantic_recoding")
@dataclass(frozen=True, kw_only=True)
class SemanticRecoding(KeyMethod):
    """Gives the rarest key combination the values of the closest one until k people share each; values change.

    Closeness is the sum over the keys of the distance in their taxonomy or range (Navarro-Arribas & Torra; Morais
    2022). k-anonymity is claimed and verified if all quasi-identifiers are keys.
    """

    name = "semantic_recoding"
    row_order_matters = False

    k: int = parameter(3, help="minimum number of people who share a key combination", at_least=2)

    def claim(self) -> Claim | None:
        """Return k-anonymity if it covers all quasi-identifiers."""
        return None if self.columns.strip() else KAnonymity(k=self.k)

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Replace rare combinations of the keys."""
        refuse_few_people(table, self.k)
        names = self.chosen(table, [column.name for column in table.columns], "quasi-identifiers")
        keys = keys_of(table, current, names)
        first = keys.groups.first_rows
        attributes = {column.name: column.attribute for column in table.columns}
        by_column = [column_distances(current[name].select(first), attributes[name]) for name in names]

        def distances(one: int) -> FloatArray:
            return np.asarray(np.sum([distance(one) for distance in by_column], axis=0))

        takes = merge_rare(keys.people, self.k, distances)
        rows = first[takes[keys.groups.labels]]
        return {name: current[name].select(rows) for name in names}


def merge_rare(people: FloatArray, k: int, distances: Distances) -> IntArray:
    """Return the combination whose values each combination takes.

    The rarest combination with fewer than k people takes the values of its nearest one, and among equally near ones of
    the rarest (Navarro-Arribas & Torra; Morais 2022, section 4.2.1), until all that are left have k people. Ties are
    broken by number.
    """
    weight = people.astype(np.float64)
    takes = np.arange(len(people), dtype=np.int32)
    alive = np.ones(len(people), dtype=bool)
    queue = [(float(weight[i]), i) for i in np.flatnonzero(weight < k - ROUNDING).tolist()]
    heapq.heapify(queue)
    while queue:
        count, rare = heapq.heappop(queue)
        if not alive[rare] or count != weight[rare]:
            continue
        alive[rare] = False
        nearest = _nearest(distances(rare), weight, alive)
        takes[rare] = nearest
        weight[nearest] += weight[rare]
        if weight[nearest] < k - ROUNDING:
            heapq.heappush(queue, (float(weight[nearest]), nearest))
    return _ends(takes)


def _nearest(distance: FloatArray, weight: FloatArray, alive: BoolArray) -> int:
    distance[~alive] = np.inf
    # sums of the same terms in another order differ in the last bits
    near = np.flatnonzero(distance <= distance.min() + ROUNDING)
    return int(near[np.argmin(weight[near])])


def _ends(takes: IntArray) -> IntArray:
    """Return where the chain of every combination ends."""
    while True:
        further = takes[takes]
        if np.array_equal(further, takes):
            return takes
        takes = further


# ---- distances between the cells of a column -----------------------------------------------------


def column_distances(cells: Cells, attribute: Numeric | Categorical) -> Distances:
    """Return a function from the number of a cell to its distances, from 0 to 1, to all cells of the column.

    Categories: leaves below their lowest common ancestor over all leaves, 0 for the same node. Numbers: difference
    over the declared range, at most 1; intervals count as their midpoint, and a missing value is far from any number.
    """
    if isinstance(cells, Nodes):
        return _node_distances(cells)
    assert isinstance(attribute, Numeric)
    return _number_distances(cells, attribute)


def _node_distances(cells: Nodes) -> Distances:
    tree = cells.hierarchy
    values = Groups.from_labels(cells.nodes)
    nodes = cells.nodes[values.first_rows]
    low, high = tree.first[nodes], tree.last[nodes]
    lowest, highest = np.minimum.outer(low, low).ravel(), np.maximum.outer(high, high).ravel()
    shares = tree.node_shares[tree.common_ancestor(lowest, highest)]
    matrix = np.where(np.equal.outer(nodes, nodes), 0.0, shares.reshape(len(nodes), len(nodes)))
    return lambda one: matrix[values.labels[one]][values.labels]


def _number_distances(cells: Intervals | Numbers, attribute: Numeric) -> Distances:
    middles = cells.midpoints() / attribute.width
    missing = np.isnan(middles)

    def distances(one: int) -> FloatArray:
        if missing[one]:
            return np.where(missing, 0.0, 1.0)
        return np.where(missing, 1.0, np.minimum(np.abs(middles - middles[one]), 1.0))

    return distances
