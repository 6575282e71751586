"""Logistic regression as the thesis's code trained it: one pass of SAGA per round. For reproduction only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from fedanon.fields import parameter
from fedanon.models import MODELS
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.types import FeatureArray, FloatArray, Rng


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
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        fit = LogisticRegression(
            C=1.0, solver="saga", max_iter=1, warm_start=True, random_state=np.random.RandomState(self.order_seed)
        )
        fit.classes_ = np.array([0, 1])
        fit.coef_, fit.intercept_ = parameters[0].copy(), parameters[1].copy()
        with warnings.catch_warnings():
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
