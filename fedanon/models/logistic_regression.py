"""Linear models by bounded Newton steps, or by noisy gradient steps that hide every single record; numpy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.fields import parameter
from fedanon.models import MODELS
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.models.outcome import softmax
from fedanon.privacy.accounting.noise import SLACK, Noise
from fedanon.types import AnyArray, FeatureArray, FloatArray, Rng, TargetArray


@MODELS.register("lr")
@dataclass(frozen=True, kw_only=True)
class LogisticRegression(Model):
    r"""L2-regularized logistic regression; parameters: coefficients (width,) and intercept (1,).

    With K > 2 classes it is softmax regression, with coefficients (K, width) and intercepts (K,); a number is predicted
    by least squares on its place in the declared range.

    Locally it descends the mean log-loss :math:`+ \frac{\lambda}{2} |w|^2 + \frac{\mu}{2} |\theta - \theta_0|^2`, where
    :math:`\theta_0` are the global parameters (FedProx, Li et al. 2020), by the steps

    .. math:: \theta \leftarrow \theta - (\tfrac{1}{4n} X^T X + \Lambda)^{-1} \nabla(\theta)

    The matrix bounds the Hessian of any logistic regression on X (Böhning & Lindsay 1988): no step size has to be
    chosen, no step can overshoot, and it is inverted once per run, so that a round costs a few products with X. In
    place of 1/4 stands 1/2 for each class of a softmax (Böhning 1992), and 1 for least squares: the Hessian itself.
    """

    name = "lr"
    aggregation = "mean"
    outcomes = frozenset({"binary", "multiclass", "regression"})
    clips_gradients = True

    l2: float = parameter(1e-4, help="penalty on squared coefficients", at_least=1e-9)
    steps: int = parameter(3, help="local steps per round", at_least=1)
    mu: float = parameter(0.0, help="weight of the distance to the global parameters (FedProx)", at_least=0.0)

    def initial(self, width: int) -> Parameters:
        """Zeros."""
        if self.outcome.kind == "multiclass":
            return [np.zeros((self.outcome.classes, width)), np.zeros(self.outcome.classes)]
        return [np.zeros(width), np.zeros(1)]

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """A few steps from the global parameters."""
        design, inverse = self._prepared(data, round_number, state)
        penalty = np.append(np.full(design.shape[1] - 1, self.l2), 0.0)
        start = self._joined(parameters)
        point, truth = start, self._truth(data.target)
        for _ in range(self.steps):
            residual = self._predicted(design @ point.astype(np.float32).T) - truth
            slope = residual.astype(np.float32).T @ design / len(design)
            point = point - (inverse @ (slope + penalty * point + self.mu * (point - start)).T).T
        return Update([point[..., :-1], point[..., -1] if point.ndim == 2 else point[-1:]], len(design))

    def predict_proba(
        self, parameters: Parameters, features: FeatureArray, *, state: LocalState | None = None
    ) -> FloatArray:
        """The logistic function of the linear score, the softmax of several, or the score itself."""
        coefficients, intercept = parameters
        return self._predicted(features @ coefficients.T + intercept)

    def _joined(self, parameters: Parameters) -> FloatArray:
        """Coefficients and intercept in one array, of which softmax has a row per class."""
        coefficients, intercept = parameters
        if coefficients.ndim == 2:
            return np.column_stack([coefficients, intercept]).astype(np.float64)
        return np.concatenate(parameters).astype(np.float64)

    def _truth(self, target: TargetArray) -> AnyArray:
        """What predictions are compared with: of several classes, 1 for that of the row and 0 for the others."""
        if self.outcome.kind != "multiclass":
            return target
        return np.eye(self.outcome.classes)[target.astype(np.int64)]

    def _predicted(self, scores: AnyArray) -> FloatArray:
        if self.outcome.kind == "binary":
            return _sigmoid(scores)
        if self.outcome.kind == "regression":
            return np.asarray(scores, dtype=np.float64)
        return softmax(scores)

    @property
    def gradient_steps(self) -> int:
        """Every step asks all rows."""
        return self.steps

    def train_on_noisy_gradients(
        self,
        parameters: Parameters,
        data: TrainingData,
        *,
        round_number: int,
        clip: float,
        noise_multiplier: float,
        learning_rate: float,
        noise: Noise,
    ) -> Update:
        """See :class:`PrivateDescent`."""
        descent = PrivateDescent(
            model=self, clip=clip, noise_multiplier=noise_multiplier, learning_rate=learning_rate, noise=noise
        )
        return descent.train(parameters, data, round_number)

    def _prepared(self, data: TrainingData, round_number: int, state: LocalState) -> tuple[AnyArray, FloatArray]:
        """The round's design matrix with a column of ones, and the inverse of the bound of its Hessian."""
        instance = data.instance(round_number)
        kept: dict[int, tuple[AnyArray, FloatArray]] = state.values.setdefault("lr", {})
        if instance not in kept:
            features = data.features(round_number)
            design = np.column_stack([features, np.ones(len(features), dtype=np.float32)])
            kept[instance] = design, self._inverse_bound(design)
        return kept[instance]

    def _inverse_bound(self, design: FeatureArray) -> FloatArray:
        divisor = {"binary": 4, "multiclass": 2, "regression": 1}[self.outcome.kind]
        bound = (design.T @ design).astype(np.float64) / (divisor * len(design))
        bound[np.diag_indices_from(bound)] += self.l2 + self.mu
        return np.asarray(np.linalg.inv(bound), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class PrivateDescent:
    r"""Noisy gradient descent on all rows (Abadi et al. 2016, without sampling).

    .. math:: \theta \leftarrow \theta - \eta \Big( \frac{1}{n} \Big( \sum_i g_i \min(1, \tfrac{C}{|g_i|})
              + N(0, z^2 C^2 I) \Big) + \lambda \theta + \mu (\theta - \theta_0) \Big)

    The matrix by which :class:`LogisticRegression` divides its steps depends on all rows and is not used.

    Parameters
    ----------
    model : the model, for its penalties and its number of steps per round.
    clip : C, the largest norm of a record's gradient.
    noise_multiplier : z.
    learning_rate : eta.
    noise : where the noise comes from.
    """

    model: LogisticRegression
    clip: float
    noise_multiplier: float
    learning_rate: float
    noise: Noise

    def train(self, parameters: Parameters, data: TrainingData, round_number: int) -> Update:
        """A few steps from the global parameters."""
        features = data.features(round_number).astype(np.float64)
        design = np.column_stack([features, np.ones(len(features))])
        norms = np.sqrt(np.square(design).sum(axis=1))
        penalty = np.append(np.full(features.shape[1], self.model.l2), 0.0)
        start = np.concatenate(parameters).astype(np.float64)
        point = start
        for _ in range(self.model.steps):
            slope = self._noisy_sum(point, design, norms, data.target) / len(design)
            point = point - self.learning_rate * (slope + penalty * point + self.model.mu * (point - start))
        return Update([point[:-1], point[-1:]], len(design))

    def _noisy_sum(self, point: FloatArray, design: FloatArray, norms: FloatArray, target: TargetArray) -> FloatArray:
        return self.noise.gaussian(clipped_sum(point, design, norms, target, self.clip), self._deviation(len(design)))

    def _deviation(self, n_rows: int) -> float:
        """With room for the rounding of a sum of so many terms, which one record may change beyond its own."""
        return self.noise_multiplier * self.clip * (1 + SLACK + n_rows * n_rows * 2.0**-52)


def clipped_sum(
    point: FloatArray, design: FloatArray, norms: FloatArray, target: TargetArray, clip: float
) -> FloatArray:
    """The sum of the records' gradients of the log-loss, each cut to the norm ``clip``.

    A gradient is (p - y) x, so its norm is known without forming it.
    """
    residual = 0.5 * (1.0 + np.tanh(0.5 * (design @ point))) - target
    size = np.abs(residual) * norms
    return np.asarray((residual * np.minimum(1.0, clip / np.maximum(size, clip))) @ design)


def _sigmoid(scores: AnyArray) -> FloatArray:
    # written with tanh, which cannot overflow
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)), dtype=np.float64)
