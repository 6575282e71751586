"""StreamNode: a node that learns from the verified windows of a gateway, and never sees a raw reading.

Each round it trains on the last windows before the newest, and scores the model on the newest, which it has not
learned yet. What is computed from windows says no more than they do, and their claim is verified on all of them
together before any is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon._version import __version__
from fedanon.errors import ConfigError, InfeasibleError, PrivacyViolationError
from fedanon.fields import build
from fedanon.learning.node import Node, NodeFacts
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.settings import RunSettings
from fedanon.metrics.information_loss import published_losses
from fedanon.models.base import LocalState, Parameters, Update
from fedanon.models.target import target
from fedanon.release.release import Release
from fedanon.streams.windowed import LearnFromWindows, WindowedStream
from fedanon.types import FloatArray, TargetArray

#: what depends on which windows are there
CHANGING = ("release", "data", "test_release", "released_test")


class StreamNode(Node):
    """A node of a run with the method `stream`.

    Parameters
    ----------
    stream : its windows.
    settings : of the run.
    number : its number among the nodes.
    rules : its own.
    visible : number of windows that are there in a round; in a simulation time passes with the rounds.
    declared : numbers of training and test rows the node stated when the run began; their weights stay the same.
    """

    def __init__(
        self,
        stream: WindowedStream,
        settings: RunSettings,
        number: int,
        rules: NodeRules | None = None,
        *,
        visible: Callable[[int], int] | None = None,
        declared: tuple[int, int] | None = None,
    ) -> None:
        if settings.dp is not None:
            raise ConfigError("A node with a stream adds no noise: its people's readings come in many rounds.")
        if rules is not None and rules.scores == "private":
            raise ConfigError("Private scores need a table; a node with a stream takes scores = 'release' or 'none'.")
        self._begin(stream.schema, settings, number, rules)
        self.stream, self.asked = stream, build(LearnFromWindows, settings.method_settings)
        self._visible, self._declared = visible, declared
        self._seen = 0
        #: target and predictions of the last evaluation, for whoever plays all nodes
        self.last_scored: tuple[TargetArray, FloatArray] | None = None
        self.look(1)
        self.unit = stream.unit

    def look(self, round_number: int) -> None:
        """Take in the windows that are there in a round."""
        end = self._visible(round_number) if self._visible else self.stream.available
        self.stream.verify(end)
        if self.stream.claim.k < self.asked.k:
            raise PrivacyViolationError(f"The stream claims k={self.stream.claim.k}; the run asks for {self.asked.k}.")
        if end < self.asked.tested + 1:
            raise InfeasibleError(f"The stream has {end} windows; at least {self.asked.tested + 1} are needed.")
        if end != self._seen:
            self._seen = end
            for name in CHANGING:
                self.__dict__.pop(name, None)
            self.state, self._test_states = LocalState(), (LocalState(), LocalState())

    @property
    def n_windows(self) -> int:
        """Number of windows the node has looked at."""
        return self._seen

    # ---- data -----------------------------------------------------------------------------------

    @cached_property
    def release(self) -> Release:
        """The windows that are trained on."""
        end = self._seen - self.asked.tested
        return self.stream.release(max(end - self.asked.windows, 0), end)

    @cached_property
    def test_release(self) -> Release:
        """The newest windows."""
        return self.stream.release(self._seen - self.asked.tested, self._seen)

    @cached_property
    def released_test(self) -> tuple[NDArray[np.float32], TargetArray]:
        """Their rows as features, and their target."""
        return self.encoding.encode_release(self.test_release), target(self.test_release, self.schema)

    @cached_property
    def facts(self) -> NodeFacts:
        """What the node may report about itself; k is the one that was verified, the smallest class may be larger."""
        losses = [published_losses(self.release, a.name).mean() for a in self.schema.quasi_identifiers]
        trained, tested = self._declared or (len(self.release), len(self.test_release))
        return NodeFacts(
            schema_sha256=self.schema.sha256,
            version=__version__,
            width=self.width,
            n_train=trained,
            n_test=tested,
            measures={"k_reached": float(self.stream.claim.k), "ncp_published": float(np.mean(losses))},
            counted=self.unit,
            classes=self.outcome.classes,
        )

    # ---- learning -------------------------------------------------------------------------------

    def train(self, parameters_: Parameters, round_number: int) -> Update:
        """One round on the windows that are there now, under the weight the node stated when the run began."""
        self.look(round_number)
        weight = self.facts.n_train
        return Update(super().train(parameters_, round_number).parameters, weight)

    def evaluate(self, parameters_: Parameters) -> dict[str, float]:
        """Scores on the newest windows, which no round has trained on."""
        features, truth = self.released_test
        predicted = self.model.predict_proba(parameters_, features, state=self._test_states[0])
        self.last_scored = truth, predicted
        return {f"{name}_released": value for name, value in self._scores(truth, predicted).items()}

    def __getstate__(self) -> dict[str, Any]:
        """It is not kept in a store: what it learns from changes."""
        raise ConfigError("A node with a stream cannot be stored.")
