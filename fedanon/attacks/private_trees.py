"""Differentially private trees, as a rival of anonymized ones: random splits, and noise on the sums of the leaves.

After Maddock et al. (2022), for comparing what an attacker rebuilds; no node trains by it. Splits do not look at the
rows, so only the sums of gradients and Hessians cost privacy: one record moves one leaf of each tree by at most 1 and
1/4. All trees of a node together keep (epsilon, delta) for its records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedanon.attacks.row_rebuilding import leaves_of
from fedanon.attacks.tree_reconstruction import OverheardTrees
from fedanon.attacks.tree_sums import LeafSums
from fedanon.fields import parameter
from fedanon.models.base import LocalState, Parameters, TrainingData, Update
from fedanon.models.trees import Tree
from fedanon.privacy.accounting.accountant import gaussian_deviation
from fedanon.types import Rng

#: how far one record moves the gradient and the Hessian of its leaf together
SENSITIVITY = (1 + 1 / 16) ** 0.5
DELTA = 1e-5


@dataclass(frozen=True, kw_only=True)
class PrivateTrees(OverheardTrees):
    """Trees with random splits whose leaves get noise; what is sent and what the noisy sums were is kept."""

    rounds: int = parameter(50, help="trees of a node that keep epsilon together", at_least=1)
    epsilon: float = parameter(1.0, help="of all trees of a node", at_least=0.01)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of every sum."""
        return float(SENSITIVITY * np.sqrt(self.rounds) * gaussian_deviation(self.epsilon, DELTA))

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """Draw a tree, and send the noisy weights of its leaves."""
        if "xgb" not in state.values:
            state.values["xgb"] = self._rows_of(data)
        rows = state.values["xgb"]
        rows.add(self._received(parameters, rows))
        margin = rows.matrices[data.instance(round_number)].get_base_margin().astype(np.float64)
        probability = 1 / (1 + np.exp(-margin))
        drawn = random_tree(self.max_depth, rows.width, rng)
        leaf, count = leaves_of(drawn, data.features(round_number)), int(drawn.leaves.sum())
        noise = rng.normal(scale=self.deviation, size=(2, count))
        gradients = np.bincount(leaf, probability - data.target, minlength=count) + noise[0]
        hessians = np.maximum(np.bincount(leaf, probability * (1 - probability), minlength=count) + noise[1], 0.0)
        # with as little in a leaf as noise alone, its weight would be noise
        steps = np.clip(-gradients / (hessians + self.l2 + self.deviation), -self.max_step, self.max_step)
        value = drawn.value.copy()
        value[drawn.leaves] = self.eta * steps
        tree = replace(drawn, value=value)
        sent = self._written([tree], rows.width)
        state.values.setdefault("sums", []).append(LeafSums(tree, steps, self.l2 + self.deviation, hessians))
        return Update([sent], len(data.target))


def random_tree(depth: int, width: int, rng: Rng) -> Tree:
    """A full tree that compares random features, all from 0 to 1, with random thresholds."""
    inner = 2**depth - 1
    nodes = np.arange(2 * inner + 1)
    is_inner = nodes < inner
    value = np.where(is_inner, rng.uniform(0.01, 0.99, len(nodes)), 0.0).astype(np.float32)
    left = np.where(is_inner, 2 * nodes + 1, -1).astype(np.int32)
    feature = np.where(is_inner, rng.integers(width, size=len(nodes)), 0).astype(np.int32)
    return Tree(left, np.where(is_inner, left + 1, -1).astype(np.int32), feature, value, np.zeros_like(left))
