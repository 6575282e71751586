from __future__ import annotations

import numpy as np
import pytest

from fedanon.models.base import LocalState
from fedanon.models.logistic_regression import LogisticRegression
from tests.models.test_boosted_trees import WIDTH, Rows


def fitted(model: LogisticRegression, data: Rows, rounds: int) -> list[np.ndarray]:
    parameters, state = model.initial(WIDTH), LocalState()
    for number in range(rounds):
        rng = np.random.default_rng(0)
        parameters = model.train(parameters, data, round_number=number, rng=rng, state=state).parameters
    return parameters


def test_reaches_the_optimum_of_sklearn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    data = Rows()
    coefficients, intercept = fitted(LogisticRegression(l2=0.01), data, 200)
    theirs = linear_model.LogisticRegression(C=1 / (0.01 * 200), tol=1e-8, max_iter=1000)
    theirs.fit(data.features(0).astype(float), data.target)
    np.testing.assert_allclose(coefficients, theirs.coef_[0], atol=1e-4)
    np.testing.assert_allclose(intercept, theirs.intercept_, atol=1e-4)


def test_every_step_descends() -> None:
    model, data = LogisticRegression(steps=1), Rows()
    losses = []
    for rounds in range(1, 8):
        coefficients, intercept = fitted(model, data, rounds)
        p = model.predict_proba([coefficients, intercept], data.features(0))
        fit = -np.mean(np.log(np.where(data.target == 1, p, 1 - p)))
        losses.append(fit + model.l2 / 2 * (coefficients**2).sum())
    assert (np.diff(losses) < 0).all()


def test_proximal_term_keeps_near_the_global_parameters() -> None:
    moves = [np.abs(fitted(LogisticRegression(mu=mu), Rows(), 1)[0]).sum() for mu in (0.0, 1.0, 100.0)]
    assert moves[0] > moves[1] > moves[2] > 0


def test_several_instances() -> None:
    parameters = fitted(LogisticRegression(), Rows(3), 30)
    assert all(np.isfinite(array).all() for array in parameters)


def test_parameters_have_the_declared_shapes() -> None:
    shapes = [array.shape for array in fitted(LogisticRegression(), Rows(), 1)]
    assert shapes == [array.shape for array in LogisticRegression().initial(WIDTH)] == [(WIDTH,), (1,)]
