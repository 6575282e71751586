"""The taxonomies of several columns laid end to end, for kernels that walk them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import Hierarchy, IntArray
from fedanon.data.table import CodedColumn


class TreeTable(NamedTuple):
    """Node v of column c has its entries at offset[c] + v; numeric columns have none."""

    offset: NDArray[np.int64]
    parent: IntArray
    first: IntArray
    last: IntArray


def tree_table(columns: Sequence[CodedColumn]) -> TreeTable:
    """Trees of the categorical columns."""
    trees = [c.hierarchy if c.values is None else None for c in columns]
    lengths = [len(t.labels) if t is not None else 0 for t in trees]
    offset = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    present = [t for t in trees if t is not None]
    return TreeTable(offset, *(_joined(present, part) for part in ("parent", "first", "last")))


def _joined(trees: list[Hierarchy], part: str) -> IntArray:
    return np.concatenate([np.empty(0, dtype=np.int32), *(getattr(tree, part) for tree in trees)])
