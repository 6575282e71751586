"""The model under attack: what a federation learns from releases, in a plain loop without messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks.context import AttackContext
from fedanon.data import partition
from fedanon.data.table import Table
from fedanon.errors import ConfigError, NotApplicableError, SchemaError
from fedanon.learning.rounds import train_in_process
from fedanon.learning.strategies import STRATEGIES
from fedanon.models import MODELS
from fedanon.models.base import Model, Parameters
from fedanon.models.encoding import Encoding
from fedanon.models.target import binary_target
from fedanon.release.release import Release
from fedanon.types import TargetArray


@dataclass(frozen=True, kw_only=True)
class Learner:
    """How the attacked models are made.

    Parameters
    ----------
    model : with its settings.
    rounds : of training.
    nodes : among which the people are dealt out; each trains on a release of its own.
    """

    model: Model
    rounds: int
    nodes: int = 1

    def releases(self, context: AttackContext, table: Table, purpose: str) -> list[Release]:
        """The release of every node."""
        parts = partition.iid(table, self.nodes, context.rng(purpose))
        # the text seeds the release of a node
        return [context.make_release(table.select_rows(rows), f"{purpose}, client {i}") for i, rows in enumerate(parts)]

    def fit(self, releases: Sequence[Release], encoding: Encoding, rng: np.random.Generator) -> Parameters:
        """The global parameters after the last round."""
        rows = [self.model.training_data(release, encoding, int(rng.integers(2**63))) for release in releases]
        return train_in_process(self.model, rows, encoding.width, STRATEGIES["fedavg"](), rounds=self.rounds, rng=rng)


def model_named(name: str, **settings: Any) -> Model:
    """A model of the federation; NotApplicableError where its library is not installed."""
    if MODELS[name].aggregation == "trees":
        try:
            import xgboost  # noqa: F401
        except ImportError:
            raise NotApplicableError("It needs xgboost: install fedanon[federated].") from None
    return MODELS[name](**settings)


def labels_of(table: Table) -> TargetArray:
    """What a model of the table predicts; NotApplicableError where that is nothing."""
    try:
        return binary_target(table, table.schema)
    except (ConfigError, SchemaError) as reason:
        raise NotApplicableError(str(reason)) from None


def certainty(
    model: Model, parameters: Parameters, features: NDArray[np.float32], labels: TargetArray
) -> NDArray[np.float64]:
    r"""Log-odds of the true label, :math:`\log \frac{p_y}{1 - p_y}`: high where the model is sure and right."""
    clear = np.finfo(np.float64).eps
    positive = np.clip(model.predict_proba(parameters, features), clear, 1 - clear)
    return np.where(labels == 1, 1.0, -1.0) * np.log(positive / (1 - positive))
