"""Trees as vectors: what they say about probe rows, so that the trees of clients can be compared like arrays.

The server has no rows. The trees of a round name the places that matter: for every leaf of every tree there is one
probe, a row that falls into it. Two clients whose trees answer all probes alike have learned the same, however their
trees are built; a tree grown on flipped labels answers the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedanon.models.trees import Tree

Rows = NDArray[np.float32]
#: of one feature: from, and below
Bounds = dict[int, tuple[float, float]]
#: features of an encoding lie between 0 and 1
WHOLE = (0.0, 1.0)


def probe_rows(trees: Iterable[Tree], width: int) -> Rows:
    """One row for every leaf: in the middle of what the leaf asks of a feature, 0 where it asks nothing."""
    boxes = [bounds for tree in trees for bounds in _leaf_bounds(tree)]
    rows = np.zeros((len(boxes), width), dtype=np.float32)
    for row, bounds in zip(rows, boxes, strict=True):
        for feature, (low, high) in bounds.items():
            row[feature] = (low + high) / 2 if low > 0.0 or high <= 0.0 else 0.0
    return rows


def _leaf_bounds(tree: Tree) -> Iterator[Bounds]:
    """What each leaf asks of the features, in the order of a walk from the root."""
    left, right, feature, value = (a.tolist() for a in (tree.left, tree.right, tree.feature, tree.value))
    waiting: list[tuple[int, Bounds]] = [(0, {})]
    while waiting:
        node, bounds = waiting.pop()
        if left[node] < 0:
            yield bounds
            continue
        low, high = bounds.get(feature[node], WHOLE)
        waiting.append((right[node], {**bounds, feature[node]: (max(low, value[node]), high)}))
        waiting.append((left[node], {**bounds, feature[node]: (low, min(high, value[node]))}))


def margins(trees: Sequence[Tree], rows: Rows) -> NDArray[np.float64]:
    """The sum of the trees' weights for every row."""
    total = np.zeros(len(rows))
    for tree in trees:
        node = np.zeros(len(rows), dtype=np.intp)
        while (inner := np.flatnonzero(~tree.leaves[node])).size:
            at = node[inner]
            below = rows[inner, tree.feature[at]] < tree.value[at]
            node[inner] = np.where(below, tree.left[at], tree.right[at])
        total += tree.value[node]
    return total
