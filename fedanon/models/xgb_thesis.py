"""Gradient-boosted trees as the thesis's code trained them, by Flower's bagging. For reproduction only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedanon.fields import parameter
from fedanon.models import MODELS
from fedanon.models.base import INSTANCES
from fedanon.models.boosted_trees import BoostedTrees, ScoredRows
from fedanon.models.tree_validation import ReceivedTrees, TreeLimits
from fedanon.models.trees import Tree
from fedanon.types import TargetArray

if TYPE_CHECKING:
    from fedanon.models.tree_validation import TreeModel


@MODELS.register("xgb_thesis")
@dataclass(frozen=True, kw_only=True)
class ThesisTrees(BoostedTrees):
    """Flower's `FedXgbBagging` with the settings of its introductory example, which the thesis's code kept.

    All new trees are added with their full weight, so two nodes with the learning rate .1 take one step of rate .2.
    The base score is not set: xgboost takes the share of positives of the rows it sees first, and Flower keeps that of
    the first reply. Here it is a tree of one leaf, the log-odds of that share, at the head of the first updates.
    """

    name = "xgb_thesis"

    instances: Literal["leaves", "draws"] = parameter("leaves", help=INSTANCES)
    max_depth: int = parameter(8, help="depth of a tree", at_least=1, at_most=12)
    colsample: float = parameter(1.0, help="share of the features that a level sees", at_least=0.01, at_most=1.0)
    max_step: float = parameter(100.0, help="largest leaf weight before the learning rate; here, no limit", at_least=1)
    thresholds: Literal["between", "values"] = parameter("values", help="as xgboost writes them")

    def update_limits(self) -> TreeLimits:
        """One tree more: the base score."""
        return replace(super().update_limits(), max_trees=self.n_trees + 1)

    def merge_trees(self, model: TreeModel, updates: Sequence[Sequence[Tree]], weights: Sequence[float]) -> None:
        """All trees as they are, but only the first node's base score."""
        first, *others = updates
        model.extend([*first, *(tree for trees in others for tree in trees[-self.n_trees :])])

    def _head(self, rows: ScoredRows, target: TargetArray) -> list[Tree]:
        if rows.n_trees:
            return []
        # a node with one class only has a finite base score too
        share = np.clip(target.mean(), 0.5 / len(target), 1 - 0.5 / len(target))
        base = Tree.leaf(float(np.log(share / (1 - share))))
        rows.add(ReceivedTrees([base]))
        return [base]
