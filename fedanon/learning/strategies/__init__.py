"""Strategies: how the server combines the updates of a round. Plain arrays in, plain arrays out.

A strategy is added by one file in this package, or by an entry point of the group ``fedanon.strategies``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedanon.errors import ConfigError
from fedanon.fields import build, check_fields
from fedanon.learning.settings import RunSettings
from fedanon.models import MODELS
from fedanon.models.base import Model, Parameters
from fedanon.models.outcome import BINARY, Outcome
from fedanon.registry import Registry
from fedanon.types import FloatArray

STRATEGIES: Registry[type[Strategy]] = Registry("strategy", __name__, group="fedanon.strategies")


@dataclass(frozen=True, kw_only=True)
class Strategy(ABC):
    """Base of all strategies; a subclass overrides :meth:`combine`, and :meth:`choose` if it also combines trees."""

    name: ClassVar[str]
    #: the kinds of updates it combines, each a :attr:`fedanon.models.base.Model.aggregation`
    aggregations: ClassVar[frozenset[str]] = frozenset({"mean"})

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def combine(self, updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
        """The arrays that follow from those of a round; the types may be wider.

        Parameters
        ----------
        updates : the arrays of each node, at least one node, all of the same shapes.
        weights : how many examples each of them has learned from.
        """

    def choose(
        self, vectors: Callable[[], FloatArray], weights: Sequence[float]
    ) -> tuple[Sequence[int], Sequence[float]]:
        """Places of the updates that are taken in, and their weights, where updates are not averaged but joined.

        Parameters
        ----------
        vectors : makes one row per update, by which updates can be compared.
        weights : how many examples each of them has learned from.
        """
        raise ConfigError(f"The strategy {self.name!r} averages arrays only.")

    def model_settings(self, model: type[Model], chosen: dict[str, Any]) -> dict[str, Any]:
        """The settings with which nodes train ``model`` under this strategy; ``chosen`` are those of the run."""
        return chosen


def make_strategy(settings: RunSettings) -> Strategy:
    """The strategy of a run."""
    return build(STRATEGIES[settings.strategy], settings.strategy_settings)


def make_model(settings: RunSettings, outcome: Outcome = BINARY) -> Model:
    """The model of a run, as its strategy wants it, for a kind of target; ConfigError where the run cannot learn it."""
    component = MODELS[settings.model]
    model = build(component, make_strategy(settings).model_settings(component, dict(settings.model_settings)))
    if outcome == BINARY:
        return model
    if settings.dp is not None:
        raise ConfigError(f"Differentially private training needs a target of two classes; this one is {outcome}.")
    if settings.protocol != "corrected":
        raise ConfigError(f"The protocol {settings.protocol!r} needs a target of two classes; this one is {outcome}.")
    return model.predicting(outcome)
