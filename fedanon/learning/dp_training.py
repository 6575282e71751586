"""Differentially private training: clipping and noise, by the server or by every node.

Flower's wrappers for it are not used: they weight clients by their rows, although their noise fits equal weights only;
they divide by the clients that answered, not by those that were to; and their noise comes from numpy's generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.learning.dp_budget import Budget, node_multiplier
from fedanon.learning.global_model import AveragedArrays, ReadUpdate
from fedanon.learning.settings import RunSettings
from fedanon.learning.validation import check_arrays
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.models.logistic_regression import LogisticRegression, PrivateDescent
from fedanon.privacy.accounting.noise import SLACK, noise_source
from fedanon.types import FloatArray, Rng

LAST_ROUND = "dp-round"


# ---- on the server -------------------------------------------------------------------------------


class PrivateAverage(AveragedArrays):
    r"""DP-FedAvg with a fixed clip and equal weights (McMahan et al. 2018).

    .. math:: \theta \leftarrow \theta + \frac{1}{q n} \Big( \sum_{c \in S} \Delta_c \min(1, \tfrac{C}{|\Delta_c|})
              + N(0, z^2 C^2 I) \Big)

    S is a Poisson sample of the n clients with rate q. The divisor is not the number of answers: that would let one
    client change the weight of the others.
    """

    def __init__(self, model: Model, width: int, settings: RunSettings, budget: Budget) -> None:
        super().__init__(model, width, settings)
        self._budget = budget

    def outliers(self, updates: Mapping[int, ReadUpdate]) -> dict[int, str]:
        """None: whether one client is left out must not depend on others, and clipping bounds each."""
        return {}

    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """None, for the same reason."""
        return {}

    def combine(self, round_number: int, accepted: Sequence[tuple[Message, ReadUpdate]]) -> None:
        """Clip, sum, add noise, divide; without any update, the noise alone."""
        budget, dp = self._budget, self._budget.dp
        current = flat(self._parameters)
        total = sum((clipped(flat(arrays) - current, dp.clip) for _, arrays in accepted), np.zeros_like(current))
        noise = noise_source(dp.randomness, np.random.default_rng([budget.settings.seed, *b"dp", round_number]))
        noisy = noise.gaussian(total, budget.noise_multiplier * dp.clip * (1 + SLACK))
        merged = like(current + noisy / (budget.rate * budget.n_clients), self._parameters)
        check_arrays(merged, self._parameters)
        self._parameters = merged


def sampled(budget: Budget, nodes: Sequence[int], number: int) -> list[int]:
    """The nodes of a round whose sample must be secret; it may be empty."""
    rng = np.random.default_rng([budget.settings.seed, *b"choose", number])
    chosen = noise_source(budget.dp.randomness, rng).chosen(len(nodes), budget.rate)
    return [node for node, is_chosen in zip(nodes, chosen, strict=True) if is_chosen]


# ---- on a node -----------------------------------------------------------------------------------


def train_privately(
    model: Model,
    settings: RunSettings,
    parameters: Parameters,
    data: TrainingData,
    *,
    round_number: int,
    rng: Rng,
    state: LocalState,
) -> Update:
    """One round of local training in the run's mode; where the server adds the noise, training is as ever."""
    dp = settings.dp
    assert dp is not None
    noise = noise_source(dp.randomness, rng)
    if dp.mode == "record":
        assert isinstance(model, LogisticRegression)
        descent = PrivateDescent(
            model=model,
            clip=dp.clip,
            noise_multiplier=node_multiplier(settings),
            learning_rate=dp.learning_rate,
            noise=noise,
        )
        return descent.train(parameters, data, round_number)
    update = model.train(parameters, data, round_number=round_number, rng=rng, state=state)
    if dp.mode == "central":
        return update
    current = flat(parameters)
    step = clipped(flat(update.parameters) - current, dp.clip)
    # two updates within the clip are up to twice the clip apart
    noisy = noise.gaussian(step, node_multiplier(settings) * 2 * dp.clip * (1 + SLACK))
    return Update(like(current + noisy, parameters), update.n_examples)


def train_once(context: Context, number: int, rounds: int) -> None:
    """Note that a round is answered; refuse more than the run has, or one that was: an average has less noise."""
    last = context.state[LAST_ROUND]["round"] if LAST_ROUND in context.state else 0
    if not isinstance(last, int) or not last < number <= rounds:
        raise UpdateRejectedError(
            "This node has trained for this round, or a later one, already; or the run has no such round."
        )
    context.state[LAST_ROUND] = ConfigRecord({"round": number})


# ---- arrays --------------------------------------------------------------------------------------


def flat(arrays: Sequence[NDArray[Any]]) -> FloatArray:
    """All numbers of all arrays."""
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays])


def like(numbers: FloatArray, arrays: Sequence[NDArray[Any]]) -> Parameters:
    """Numbers in the shapes and types of ``arrays``."""
    parts = np.split(numbers, np.cumsum([array.size for array in arrays])[:-1])
    return [part.reshape(array.shape).astype(array.dtype) for part, array in zip(parts, arrays, strict=True)]


def clipped(step: FloatArray, clip: float) -> FloatArray:
    """A step cut to a length of at most ``clip``."""
    return step * (clip / max(float(np.linalg.norm(step)), clip))
