"""Logistic regression by gradient steps of which no single record can be seen: clipped, summed, with noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.models.base import Parameters, TrainingData, Update
from fedanon.models.logistic_regression import LogisticRegression
from fedanon.privacy.noise import SLACK, Noise

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PrivateDescent:
    r"""Noisy gradient descent on all rows (Abadi et al. 2016, without sampling).

    .. math:: \theta \leftarrow \theta - \eta \Big( \frac{1}{n} \Big( \sum_i g_i \min(1, \tfrac{C}{|g_i|})
              + N(0, z^2 C^2 I) \Big) + \lambda \theta + \mu (\theta - \theta_0) \Big)

    The matrix by which :class:`LogisticRegression` divides its steps depends on all rows and is not used.

    Parameters
    ----------
    model : its penalties and its number of steps a round.
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

    def _noisy_sum(
        self, point: FloatArray, design: FloatArray, norms: FloatArray, target: NDArray[np.int8]
    ) -> FloatArray:
        return self.noise.gaussian(clipped_sum(point, design, norms, target, self.clip), self._deviation(len(design)))

    def _deviation(self, n_rows: int) -> float:
        """With room for the rounding of a sum of so many terms, which one record may change beyond its own."""
        return self.noise_multiplier * self.clip * (1 + SLACK + n_rows * n_rows * 2.0**-52)


def clipped_sum(
    point: FloatArray, design: FloatArray, norms: FloatArray, target: NDArray[np.int8], clip: float
) -> FloatArray:
    """The sum of the records' gradients of the log-loss, each cut to the norm ``clip``.

    A gradient is (p - y) x, so its norm is known without forming it.
    """
    residual = 0.5 * (1.0 + np.tanh(0.5 * (design @ point))) - target
    size = np.abs(residual) * norms
    return np.asarray((residual * np.minimum(1.0, clip / np.maximum(size, clip))) @ design)
