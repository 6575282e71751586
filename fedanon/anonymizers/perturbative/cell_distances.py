"""How far the cells of key columns are from each other, by taxonomy or range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes, Numbers
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.schema import Categorical, Numeric


def column_distances(cells: Cells, attribute: Numeric | Categorical) -> Callable[[int], FloatArray]:
    """A function from the number of a cell to its distances, from 0 to 1, to all cells of the column.

    Categories: leaves below their lowest common ancestor over all leaves, 0 for the same node. Numbers: difference
    over the declared range, at most 1; intervals count as their middle, and a missing value is far from any number.
    """
    if isinstance(cells, Nodes):
        return _node_distances(cells)
    assert isinstance(attribute, Numeric)
    return _number_distances(cells, attribute)


def _node_distances(cells: Nodes) -> Callable[[int], FloatArray]:
    tree = cells.hierarchy
    values = Groups.of(cells.nodes)
    nodes = cells.nodes[values.first_rows]
    low, high = tree.first[nodes], tree.last[nodes]
    lowest, highest = np.minimum.outer(low, low).ravel(), np.maximum.outer(high, high).ravel()
    shares = tree.leaf_counts[tree.common_ancestor(lowest, highest)] / tree.n_leaves
    matrix = np.where(np.equal.outer(nodes, nodes), 0.0, shares.reshape(len(nodes), len(nodes)))
    return lambda one: matrix[values.labels[one]][values.labels]


def _number_distances(cells: Intervals | Numbers, attribute: Numeric) -> Callable[[int], FloatArray]:
    middles = cells.midpoints() / attribute.width
    missing = np.isnan(middles)

    def distances(one: int) -> FloatArray:
        if missing[one]:
            return np.where(missing, 0.0, 1.0)
        return np.where(missing, 1.0, np.minimum(np.abs(middles - middles[one]), 1.0))

    return distances
