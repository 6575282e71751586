"""Spans against the plain definition: the property of the lowest common ancestor, found by walking the tree."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.spans import Measure, span_table
from fedanon.data.table import Table
from fedanon.kernels.spans import span
from tests.anonymizers.tables import tables


def walk(tree: Hierarchy, low: int, high: int) -> int:
    """Lowest common ancestor of two leaves by their lists of ancestors."""
    ancestors = [low]
    while ancestors[-1] != tree.root:
        ancestors.append(int(tree.parent[ancestors[-1]]))
    node = high
    while node not in ancestors:
        node = int(tree.parent[node])
    return node


@given(tables(), st.sampled_from(["leaves", "heights"]))
def test_span_is_the_property_of_the_common_ancestor(table: Table, measure: Measure) -> None:
    spans = span_table(table.columns, measure)
    for i, column in enumerate(table.columns):
        for low in range(column.size):
            for high in range(low, column.size):
                if column.values is not None:
                    at = column.positions
                    expected = min((at[high] - at[low]) / column.attribute.width, 1.0)  # type: ignore[union-attr]
                    found = span(spans, i, at[low], at[high])
                else:
                    tree = column.hierarchy
                    loss = tree.leaf_loss if measure == "leaves" else tree.height_loss
                    node = walk(tree, low, high)
                    # one leaf below an inner node is still exact
                    expected = 0.0 if low == high else loss[node]
                    found = span(spans, i, float(low), float(high))
                assert np.isclose(found, expected)
