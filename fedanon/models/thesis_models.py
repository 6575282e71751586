"""Models as the thesis's code trained them, for reproduction only: one pass of SAGA per round, and Flower's bagging."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fedanon.fields import parameter
from fedanon.models import MODELS
from fedanon.models.base import INSTANCES, LocalState, Model, Parameters, TrainingData, Update
from fedanon.models.boosted_trees import BoostedTrees, ScoredRows
from fedanon.models.tree_validation import ReceivedTrees, TreeLimits, TreeModel
from fedanon.models.trees import Tree
from fedanon.types import FeatureArray, FloatArray, Rng, TargetArray


@MODELS.register("lr_thesis")
@dataclass(frozen=True, kw_only=True)
class ThesisLogisticRegression(Model):
    """scikit-learn's LogisticRegression (L2, C=1) with one pass per round, warm-started from the global parameters.

    The thesis's code set numpy's global seed before every fit, so every pass visits the rows in the same order; here
    ``order_seed`` gives that order.
    """

    name = "lr_thesis"
    aggregation = "mean"

    order_seed: int = parameter(42, help="seed of the order in which a pass visits the rows", at_least=0)

    def initial(self, width: int) -> Parameters:
        """Zeros."""
        return [np.zeros((1, width)), np.zeros(1)]

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """One pass."""
        from sklearn import config_context
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        fit = LogisticRegression(
            C=1.0, solver="saga", max_iter=1, warm_start=True, random_state=np.random.RandomState(self.order_seed)
        )
        fit.classes_ = np.array([0, 1])
        fit.coef_, fit.intercept_ = parameters[0].copy(), parameters[1].copy()
        # checking the constants above anew takes longer than the pass
        with warnings.catch_warnings(), config_context(skip_parameter_validation=True):
            warnings.simplefilter("ignore", ConvergenceWarning)  # one pass is the protocol
            fit.fit(data.features(round_number), data.target)
        # scikit-learn keeps the type of the features
        trained = [np.asarray(array, dtype=np.float64) for array in (fit.coef_, fit.intercept_)]
        return Update(trained, len(data.target))

    def predict_proba(
        self, parameters: Parameters, features: FeatureArray, *, state: LocalState | None = None
    ) -> FloatArray:
        """The logistic function of the linear score."""
        score = features @ parameters[0][0] + parameters[1][0]
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * score)), dtype=np.float64)


@MODELS.register("xgb_thesis")
@dataclass(frozen=True, kw_only=True)
class ThesisTrees(BoostedTrees):
    """Flower's `FedXgbBagging` with the settings of its introductory example, which the thesis's code kept.

    All new trees are added with their full weight, so two nodes with the learning rate .1 take one step of rate .2.
    The base score is not set: xgboost takes the share of positives of the rows it sees first, and Flower keeps that of
    the first reply. Here it is a tree of one leaf, the log-odds of that share, at the head of the first updates.
    """

    name = "xgb_thesis"
    outcomes = frozenset({"binary"})

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
