"""A small neural network (torch), trained by federated averaging."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fedanon.fields import parameter
from fedanon.models import MODELS
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.types import FeatureArray, FloatArray, Rng

if TYPE_CHECKING:
    from torch import Tensor


@MODELS.register("mlp")
@dataclass(frozen=True, kw_only=True)
class MultilayerPerceptron(Model):
    """Hidden layers with ReLU, trained with Adam; parameters: weights (out, in) and bias (out,) of each layer in turn.

    Adam starts from scratch in every round, so that only the parameters pass from one round to the next. With one
    thread and the same seed a run gives the same bits.
    """

    name = "mlp"
    aggregation = "mean"

    hidden: int = parameter(32, help="units per hidden layer", at_least=1, at_most=4096)
    layers: int = parameter(1, help="number of hidden layers", at_least=1, at_most=8)
    epochs: int = parameter(1, help="local passes over the rows per round", at_least=1)
    batch_size: int = parameter(64, help="rows per step", at_least=1)
    learning_rate: float = parameter(1e-3, help="learning rate of Adam", at_least=1e-6)
    l2: float = parameter(1e-4, help="weight decay", at_least=0.0)
    mu: float = parameter(0.0, help="weight of the distance to the global parameters (FedProx)", at_least=0.0)
    seed: int = parameter(0, help="seed of the first parameters, the same on every node", at_least=0)

    def initial(self, width: int) -> Parameters:
        """He's normal weights and zero biases."""
        rng = np.random.default_rng(self.seed)
        sizes = [width, *[self.hidden] * self.layers, 1]
        return [
            array
            for n_in, n_out in pairwise(sizes)
            for array in (
                (rng.standard_normal((n_out, n_in)) * np.sqrt(2 / n_in)).astype(np.float32),
                np.zeros(n_out, dtype=np.float32),
            )
        ]

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """Some epochs of mini-batch Adam from the global parameters."""
        import torch

        with _one_thread():
            start = [torch.tensor(array, dtype=torch.float32) for array in parameters]
            weights = [tensor.clone().requires_grad_() for tensor in start]
            optimizer = torch.optim.AdamW(weights, lr=self.learning_rate, weight_decay=self.l2, foreach=True)
            features = torch.from_numpy(data.features(round_number))
            target = torch.from_numpy(data.target.astype(np.float32))
            for batch in self._batches(len(target), rng):
                optimizer.zero_grad()
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    _scores(weights, features[batch]), target[batch]
                )
                (loss + self._distance(weights, start)).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        return Update([tensor.detach().numpy() for tensor in weights], len(target))

    def predict_proba(
        self, parameters: Parameters, features: FeatureArray, *, state: LocalState | None = None
    ) -> FloatArray:
        """The logistic function of the last layer; numpy is enough."""
        layer = features
        for weight, bias in _pairs(parameters):
            hidden = layer @ weight.T + bias
            layer = np.maximum(hidden, 0)
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * hidden[:, 0])), dtype=np.float64)

    def _batches(self, n_rows: int, rng: Rng) -> Iterator[Tensor]:
        import torch

        for _ in range(self.epochs):
            order = torch.from_numpy(rng.permutation(n_rows))
            yield from order.split(self.batch_size)  # type: ignore[no-untyped-call]

    def _distance(self, weights: list[Tensor], start: list[Tensor]) -> Tensor | float:
        if self.mu == 0:
            return 0.0
        return self.mu / 2 * sum(((a - b) ** 2).sum() for a, b in zip(weights, start, strict=True))


def _scores(weights: list[Tensor], features: Tensor) -> Tensor:
    layer = features
    for weight, bias in _pairs(weights):
        hidden: Tensor = layer @ weight.T + bias
        layer = hidden.relu()
    return hidden[:, 0]


def _pairs(parameters: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(parameters[::2], parameters[1::2], strict=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch on one thread: small layers gain nothing from more, and sums keep their order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
