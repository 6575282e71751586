"""What the trees of a node say about the rows behind them: sums of gradients and Hessians in every leaf.

xgboost's own document holds more than prediction needs. With G and H the sums over the rows of a node of a tree, it
stores H (``sum_hessian``), the weight -G / (H + l2) of inner nodes and leaves (``base_weights``), and the gain of each
split (``loss_changes``). H can be left out and still follows from the other two; leaf weights alone leave one equation
per leaf.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.models.trees import Tree
from fedanon.types import FloatArray, IndexArray

#: what is sent: xgboost's document, the same without sum_hessian, or what prediction needs
Wire = Literal["document", "no_sum_hessian", "leaf_weights"]

#: a weight is known to this relative precision, as float32
PRECISION = 3e-7
#: how unlikely a leaf far from its expected size is: standard deviation of the logarithm
SIZE_SPREAD = 1.0


@dataclass(frozen=True, eq=False)
class LeafSums:
    """A tree and what is known of its leaves, in the order of ``np.flatnonzero(tree.leaves)``.

    Parameters
    ----------
    tree : with leaf weights as the node sent them.
    steps : leaf weights without the learning rate, -G / (H + l2).
    l2 : penalty on squared weights.
    hessians : H of every leaf; None where it cannot be told.
    """

    tree: Tree
    steps: FloatArray
    l2: float
    hessians: FloatArray | None

    @property
    def gradients(self) -> FloatArray:
        """G of every leaf; needs the Hessians."""
        assert self.hessians is not None
        return -self.steps * (self.hessians + self.l2)


def read_sums(document: bytes, tree: Tree, wire: Wire, *, eta: float, l2: float) -> LeafSums:
    """What a node's only new tree says.

    Parameters
    ----------
    document : as xgboost wrote it, of which ``wire`` says what was sent.
    tree : as it was sent.
    wire : what an attacker has.
    eta, l2 : learning rate and penalty, which all nodes agreed on.
    """
    leaves = np.flatnonzero(tree.leaves)
    steps = tree.value[leaves].astype(np.float64) / eta
    if wire == "leaf_weights":
        return LeafSums(tree, steps, l2, None)
    [written] = json.loads(document)["learner"]["gradient_booster"]["model"]["trees"]
    if wire == "document":
        return LeafSums(tree, steps, l2, np.array(written["sum_hessian"])[leaves])
    weights = np.array(written["base_weights"])
    weights[leaves] = steps
    return LeafSums(tree, steps, l2, recover_hessians(tree, weights, np.array(written["loss_changes"]), l2)[leaves])


def recover_hessians(tree: Tree, weights: FloatArray, gains: FloatArray, l2: float) -> FloatArray:
    r"""The sum of Hessians of every node from weights and the gain of the first split.

    Gradients and Hessians of two children add up to those of their parent, so with :math:`w = -G / (H + \lambda)`

    .. math:: H_L = \frac{w (H + \lambda) - w_R H - \lambda (w_L + w_R)}{w_L - w_R}

    and :math:`H` of the root solves :math:`w_L^2 (H_L + \lambda) + w_R^2 (H_R + \lambda) - w^2 (H + \lambda) = gain`,
    which is linear in it.
    """
    hessians = np.full(len(tree), np.nan)
    if tree.leaves[0]:
        return hessians

    def left_of(node: int, total: float) -> float:
        own, left, right = weights[node], weights[tree.left[node]], weights[tree.right[node]]
        return float((own * (total + l2) - right * total - l2 * (left + right)) / (left - right))

    def gain_of(total: float) -> float:
        own, left, right = weights[0], weights[tree.left[0]], weights[tree.right[0]]
        part = left_of(0, total)
        return float(left**2 * (part + l2) + right**2 * (total - part + l2) - own**2 * (total + l2))

    at_zero = gain_of(0.0)
    hessians[0] = (gains[0] - at_zero) / (gain_of(1.0) - at_zero)
    for node in np.flatnonzero(~tree.leaves).tolist():  # a child comes after its parent
        hessians[tree.left[node]] = left_of(node, hessians[node])
        hessians[tree.right[node]] = hessians[node] - hessians[tree.left[node]]
    return np.asarray(np.maximum(hessians, 0.0))


# ---- The first tree ------------------------------------------------------------------------------
#
# Every row has the probability one half, so that a Hessian is one quarter, a gradient plus or minus one half, and sums
# are counts of people.


def first_counts(sums: LeafSums, n_rows: int, expected: FloatArray) -> IndexArray:
    """Rows of label 0 and of label 1 in every leaf of a node's first tree.

    Parameters
    ----------
    sums : of the first tree.
    n_rows : of the node, which it sends with every update.
    expected : share of the rows that a leaf would hold for all one knows, used where Hessians are not known.
    """
    if sums.hessians is not None and np.isfinite(sums.hessians).all():
        # noisy sums do not add up to the rows there are
        share = sums.hessians * (n_rows / 4) / max(float(sums.hessians.sum()), 1e-9)
        exact = abs(4 * sums.hessians.sum() - n_rows) < 0.5
        rows = np.rint(4 * (sums.hessians if exact else share)).astype(np.int64)
        positive = np.rint(rows / 2 - sums.gradients).astype(np.int64)
    else:
        rows, positive = _counts_from_weights(sums, n_rows, expected)
    positive = np.clip(positive, 0, rows)
    return np.column_stack([rows - positive, positive])


def _counts_from_weights(sums: LeafSums, n_rows: int, expected: FloatArray) -> tuple[IndexArray, IndexArray]:
    r"""Whole numbers n, p of each leaf with :math:`(p - n/2) / (n/4 + \lambda)` equal to its weight, n adding up.

    Among those that add up to the rows of the node the likeliest are taken, by a knapsack over the leaves.
    """
    sizes = np.arange(1, n_rows + 1)
    options = [_candidates(step, sizes, sums.l2) for step in sums.steps]
    best = np.full(n_rows + 1, np.inf)
    best[0] = 0.0
    chosen = []
    for (rows, _), share in zip(options, expected, strict=True):
        costs = np.square(np.log(rows / max(share * n_rows, 0.5)) / SIZE_SPREAD)
        after, taken = np.full(n_rows + 1, np.inf), np.zeros(n_rows + 1, dtype=np.int64)
        for i, (size, cost) in enumerate(zip(rows, costs, strict=True)):
            reached = best[: n_rows + 1 - size] + cost
            better = reached < after[size:]
            after[size:][better], taken[size:][better] = reached[better], i
        best = after
        chosen.append(taken)
    left = n_rows if np.isfinite(best[n_rows]) else int(np.argmin(best))
    counts = []
    for (rows, positive), taken in zip(reversed(options), reversed(chosen), strict=True):
        place = taken[left]
        counts.append((rows[place], positive[place]))
        left -= int(rows[place])
    found = np.array(counts[::-1], dtype=np.int64)
    return found[:, 0], found[:, 1]


def _candidates(step: float, sizes: IndexArray, l2: float) -> tuple[IndexArray, IndexArray]:
    """All sizes of a leaf, and positives in it, that give its weight; all sizes with the nearest if none does."""
    positive = sizes / 2 + step * (sizes / 4 + l2)
    whole = np.clip(np.rint(positive), 0, sizes)
    error = np.abs((whole - sizes / 2) / (sizes / 4 + l2) - step)
    fits = error <= PRECISION * max(1.0, abs(step))
    if not fits.any():
        fits = error <= np.partition(error, min(20, len(error) - 1))[min(20, len(error) - 1)]
    return sizes[fits], whole[fits].astype(np.int64)


def thresholds_of(trees: Sequence[Tree], feature: int) -> FloatArray:
    """All distinct thresholds of a feature."""
    found = [tree.value[~tree.leaves & (tree.feature == feature)] for tree in trees]
    return np.unique(np.concatenate(found)).astype(np.float64)
