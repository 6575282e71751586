"""Earth mover's distance between distributions of sensitive values (Li, Li & Venkatasubramanian 2007).

Rows of ``distributions`` are compared with the one distribution ``whole``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray, Hierarchy


def equal_distance(distributions: FloatArray, whole: FloatArray) -> FloatArray:
    r"""All values are equally far apart.

    .. math:: \tfrac12 \sum_s |p_s - q_s|
    """
    return np.asarray(np.abs(distributions - whole).sum(axis=1) / 2)


def ordered_distance(distributions: FloatArray, whole: FloatArray) -> FloatArray:
    r"""The m values lie in a row, neighbours 1 / (m - 1) apart.

    .. math:: \frac{1}{m-1} \sum_{s} \Big| \sum_{r \le s} (p_r - q_r) \Big|
    """
    carried = np.cumsum(distributions - whole, axis=1)
    return np.asarray(np.abs(carried).sum(axis=1) / max(len(whole) - 1, 1))


def hierarchical_distance(
    distributions: FloatArray, whole: FloatArray, tree: Hierarchy, leaves: NDArray[np.int64]
) -> FloatArray:
    r"""Two values are as far apart as their lowest common ancestor is high, over the height H of the tree.

    .. math:: \sum_N \frac{height(N)}{H} \min(pos(N), neg(N))

    over the inner nodes N, where pos and neg are what the children of N have too much and too little. ``leaves`` are
    the leaves of the values. The distance is an ultrametric, so the greedy flow is optimal.
    """
    n_nodes = len(tree.labels)
    extra = np.zeros((len(distributions), n_nodes))
    extra[:, leaves] = distributions - whole
    surplus, want = np.zeros_like(extra), np.zeros_like(extra)
    cost = np.zeros(len(distributions))
    for node in range(n_nodes - 1):  # children are numbered before their parents
        moved = np.minimum(surplus[:, node], want[:, node])
        cost += moved * tree.height[node]
        extra[:, node] += surplus[:, node] - want[:, node]
        above = tree.parent[node]
        surplus[:, above] += np.maximum(extra[:, node], 0.0)
        want[:, above] += np.maximum(-extra[:, node], 0.0)
    root = tree.root
    cost += np.minimum(surplus[:, root], want[:, root]) * tree.height[root]
    return np.asarray(cost / max(int(tree.height[root]), 1))
