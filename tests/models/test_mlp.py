from __future__ import annotations

import numpy as np
import pytest

from fedanon.models import scores
from fedanon.models.base import LocalState
from fedanon.models.mlp import MultilayerPerceptron
from tests.models.test_boosted_trees import WIDTH, Rows

torch = pytest.importorskip("torch")


def fitted(model: MultilayerPerceptron, data: Rows, rounds: int) -> list[np.ndarray]:
    parameters = model.initial(WIDTH)
    for number in range(rounds):
        rng = np.random.default_rng(number)
        parameters = model.train(parameters, data, round_number=number, rng=rng, state=LocalState()).parameters
    return parameters


def test_learns_and_repeats_to_the_bit() -> None:
    model, data = MultilayerPerceptron(epochs=5, layers=2, learning_rate=0.01), Rows()
    parameters = fitted(model, data, 8)
    assert scores.auc(data.target, model.predict_proba(parameters, data.features(0))) > 0.85
    for first, second in zip(parameters, fitted(model, data, 8), strict=True):
        np.testing.assert_array_equal(first, second)


def test_proximal_term_keeps_near_the_global_parameters() -> None:
    models = [MultilayerPerceptron(mu=mu, epochs=5, learning_rate=0.01) for mu in (0.0, 10.0)]
    moves = [np.abs(fitted(m, Rows(), 1)[0] - m.initial(WIDTH)[0]).sum() for m in models]
    assert moves[0] > moves[1]


def test_training_does_not_change_the_parameters_given() -> None:
    model = MultilayerPerceptron()
    start = model.initial(WIDTH)
    model.train(start, Rows(), round_number=1, rng=np.random.default_rng(0), state=LocalState())
    for first, second in zip(start, model.initial(WIDTH), strict=True):
        np.testing.assert_array_equal(first, second)
