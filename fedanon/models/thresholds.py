"""Thresholds: xgboost splits at a value of some row; a node may send a point between two values instead."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedanon.models.trees import Tree

if TYPE_CHECKING:
    from xgboost import DMatrix

#: the golden section: of two numbers with few digits it gives no third one
SECTION = (5**0.5 - 1) / 2


def between_values(tree: Tree, matrix: DMatrix, smallest: NDArray[np.float32]) -> Tree:
    r"""The tree with every threshold moved towards the next lower cut of xgboost's histogram.

    .. math:: t' = c + \frac{\sqrt 5 - 1}{2} (t - c)

    where :math:`c < t` are neighbouring cuts. A feature with at most 256 values has them all as cuts, so no row changes
    sides; with more, a row between :math:`t'` and :math:`t` does.

    Parameters
    ----------
    tree : grown on the matrix.
    matrix : the rows; xgboost keeps its cuts there.
    smallest : smallest value of every feature, for xgboost puts its lowest cut far below.
    """
    ends, cuts = matrix.get_quantile_cut()
    inner = np.flatnonzero(~tree.leaves)
    value = tree.value.copy()
    for node, feature in zip(inner, tree.feature[inner], strict=True):
        own = cuts[ends[feature] : ends[feature + 1]]
        place = int(np.searchsorted(own, value[node]))
        value[node] = _between(max(float(own[place - 1]), float(smallest[feature])), float(value[node]))
    return replace(tree, value=value)


def _between(low: float, high: float) -> np.float32:
    # of two neighbouring floats there is none between
    point = np.float32(low + SECTION * (high - low))
    return point if low < point <= high else np.float32(high)
