"""A table of bins: what an anonymizer sees of a reference population, whose words the server does not know."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fedanon.data.hierarchy import Hierarchy, IntArray
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.federated.together.axes import Axis


def reference_table(axes: Sequence[Axis], bins: IntArray) -> Table:
    """Columns of whole numbers and of numbered nodes; a missing number is the largest."""
    names = [f"axis{i}" for i in range(len(axes))]
    attributes = tuple(_attribute(name, axis) for name, axis in zip(names, axes, strict=True))
    columns = {
        a.name: bins[:, i] if isinstance(a, Numeric) else pd.Series(bins[:, i]).map(str).astype("str")
        for i, a in enumerate(attributes)
    }
    return Table.from_frame(pd.DataFrame(columns), Schema(attributes))


def _attribute(name: str, axis: Axis) -> Numeric | Categorical:
    if axis.tree is None:
        return Numeric(name, Role.QUASI_IDENTIFYING, 0.0, float(max(axis.n_bins - 1, 1)), integer=True)
    return Categorical(name, Role.QUASI_IDENTIFYING, Hierarchy.from_paths(_paths(axis.tree)))


def _paths(tree: Hierarchy) -> list[list[str]]:
    """Every leaf with the nodes above it, by number."""
    paths = []
    for leaf in range(tree.n_leaves):
        path = [leaf]
        while tree.parent[path[-1]] != path[-1]:
            path.append(int(tree.parent[path[-1]]))
        paths.append([str(node) for node in path])
    return paths
