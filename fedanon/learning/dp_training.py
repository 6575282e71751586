"""Differentially private training: the budget of a run, clipping and noise, by the server or by every node.

Flower's wrappers for it are not used: they weight nodes by their rows, although their noise fits equal weights only;
they divide by the nodes that answered, not by those that were to; and their noise comes from numpy's generator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError, DataError
from fedanon.io.atomic import atomic_write
from fedanon.learning.aggregators import ArrayAggregator, ReadUpdate
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.settings import COVERS, COVERS_BY_RISK, UNITS, DpSettings, RunSettings
from fedanon.learning.strategies import make_model, make_strategy
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.privacy.accounting.accountant import GaussianRounds, epsilon_of, keeps, noise_multiplier_for
from fedanon.privacy.accounting.noise import SLACK, noise_source
from fedanon.types import FloatArray, Rng

#: the smallest budget that settings take
LEAST_EPSILON = 1e-3
#: room for the rounding of a sum of rounds, and for nothing else
ROUNDING = 1e-9


class TrainingBudget:
    """What the rounds of a run have cost, kept beside its checkpoints, and what is left.

    A round is noted before anyone is asked: one that fails half-way, or is asked again after a restart, has cost its
    share. The note outlives checkpoints that are discarded: what was published stays published.

    Parameters
    ----------
    dp : the budget.
    settings : of the run.
    n_nodes : nodes that take part.
    path : of the note; None keeps none.
    """

    def __init__(self, dp: DpSettings, settings: RunSettings, n_nodes: int, path: Path | None) -> None:
        self.dp = dp
        self.settings = settings
        self.n_nodes = n_nodes
        self._path = path
        self._spent = read_note(path) if path else []

    @classmethod
    def for_run(cls, settings: RunSettings, n_nodes: int, checkpoints: Checkpoints | None) -> TrainingBudget | None:
        """The budget of a run that has one."""
        if settings.dp is None:
            return None
        path = checkpoints.folder / f"{checkpoints.name(settings)}.spent.json" if checkpoints else None
        return cls(settings.dp, settings, n_nodes, path)

    @property
    def rate(self) -> float:
        """Chance of a node to be in a round's sample, where the sample is secret: from a server that is trusted."""
        wanted = self.settings.nodes_per_round
        return min(wanted / self.n_nodes, 1.0) if self.dp.mode == "central" and wanted else 1.0

    @property
    def epsilon(self) -> float:
        """Spent until now, at the run's delta."""
        return epsilon_of(grouped(self._spent), self.dp.delta)

    @property
    def noise_multiplier(self) -> float:
        """Of the last round."""
        return self._spent[-1].noise_multiplier

    def spend(self, number: int) -> bool:
        """Note one more round, if the budget has room for it."""
        if self._spent and self.epsilon >= self.dp.epsilon:
            return False
        more = self._next(self.settings.rounds - number + 1)
        if not self._keeps(more):
            return False
        self._spent.append(more)
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_note(self._path, self._spent)
        return True

    def _next(self, left: int) -> GaussianRounds:
        """The next round; the server divides what is left of its budget, nodes follow the plan of the whole run."""
        if self.dp.mode != "central":
            return node_round(self.settings)
        if self._spent and self._keeps(replace(self._spent[-1], rate=self.rate, count=left)):
            return replace(self._spent[-1], rate=self.rate)  # all goes as planned
        multiplier = noise_multiplier_for(
            self.dp.epsilon, self.dp.delta, count=left, rate=self.rate, spent=grouped(self._spent)
        )
        return GaussianRounds(noise_multiplier=multiplier, rate=self.rate)

    def _keeps(self, more: GaussianRounds) -> bool:
        """Whether the budget has room for more rounds."""
        return keeps([*grouped(self._spent), more], self.dp.epsilon * (1 + ROUNDING), self.dp.delta)

    def to_dict(self) -> dict[str, Any]:
        """For the result of the run."""
        dp = self.dp
        return {
            "mode": dp.mode,
            "epsilon": dp.epsilon,
            "delta": dp.delta,
            "epsilon_spent": self.epsilon,
            "rounds_spent": len(self._spent),
            "clip": dp.clip,
            "noise_multiplier": self.noise_multiplier if self._spent else None,
            "rate": self.rate,
            "unit": UNITS[dp.mode],
            "covers": COVERS_BY_RISK if dp.by_risk else COVERS,
            "randomness": dp.randomness,
            "promised": dp.randomness == "secure",
        }


# ---- what a round costs --------------------------------------------------------------------------


def queries_per_round(settings: RunSettings) -> int:
    """How often a round asks a node's rows: once per update, or once per gradient step."""
    assert settings.dp is not None
    return make_model(settings).gradient_steps if settings.dp.mode == "record" else 1


@lru_cache(maxsize=256)
def node_multiplier(settings: RunSettings) -> float:
    """The noise multiplier of a node that is asked in every round: by whom it is asked how often is no secret."""
    assert settings.dp is not None
    count = settings.rounds * queries_per_round(settings)
    return noise_multiplier_for(settings.dp.epsilon, settings.dp.delta, count=count)


def node_round(settings: RunSettings) -> GaussianRounds:
    """What one round costs where nodes add the noise."""
    return GaussianRounds(noise_multiplier=node_multiplier(settings), count=queries_per_round(settings))


def grouped(rounds: Sequence[GaussianRounds]) -> list[GaussianRounds]:
    """Equal rounds as one entry, which is the same to the accountant."""
    counts: dict[tuple[float, float], int] = {}
    for entry in rounds:
        key = entry.noise_multiplier, entry.rate
        counts[key] = counts.get(key, 0) + entry.count
    return [GaussianRounds(noise_multiplier=z, rate=q, count=count) for (z, q), count in counts.items()]


def read_note(path: Path) -> list[GaussianRounds]:
    """What a note says was spent; nothing, if there is none."""
    if not path.exists():
        return []
    try:
        return [GaussianRounds(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, ConfigError):
        raise DataError(f"The note {path.name} of the privacy budget is damaged.") from None


def write_note(path: Path, rounds: Sequence[GaussianRounds], *, mode: int = 0o666) -> None:
    """Replace a note."""
    atomic_write(path, json.dumps([vars(entry) for entry in rounds]) + "\n", mode=mode)


# ---- on the server -------------------------------------------------------------------------------


class PrivateAverage(ArrayAggregator):
    r"""DP-FedAvg with a fixed clip and equal weights (McMahan et al. 2018).

    .. math:: \theta \leftarrow \theta + \frac{1}{q n} \Big( \sum_{c \in S} \Delta_c \min(1, \tfrac{C}{|\Delta_c|})
              + N(0, z^2 C^2 I) \Big)

    S is a Poisson sample of the n nodes with rate q. The divisor is not the number of answers: that would let one node
    change the weight of the others.
    """

    def __init__(self, model: Model, width: int, budget: TrainingBudget) -> None:
        super().__init__(model, width, make_strategy(budget.settings))
        self._budget = budget

    def outliers(self, updates: Mapping[int, ReadUpdate]) -> dict[int, str]:
        """None: whether one node is left out must not depend on others, and clipping bounds each."""
        return {}

    def directions(self, updates: Mapping[int, ReadUpdate]) -> dict[int, FloatArray]:
        """None, for the same reason."""
        return {}

    def combine(self, round_number: int, updates: Sequence[ReadUpdate], weights: Sequence[float]) -> None:
        """Clip, sum, add noise, divide; without any update, the noise alone."""
        budget, dp = self._budget, self._budget.dp
        current = flat(self._parameters)
        total = sum((clipped(flat(arrays) - current, dp.clip) for arrays in updates), np.zeros_like(current))
        noise = noise_source(dp.randomness, np.random.default_rng([budget.settings.seed, *b"dp", round_number]))
        noisy = noise.gaussian(total, budget.noise_multiplier * dp.clip * (1 + SLACK))
        self._replace(like(current + noisy / (budget.rate * budget.n_nodes), self._parameters))


def sampled(budget: TrainingBudget, nodes: Sequence[int], number: int) -> list[int]:
    """The nodes of a round whose sample must be secret; it may be empty."""
    rng = np.random.default_rng([budget.settings.seed, *b"choose", number])
    chosen = noise_source(budget.dp.randomness, rng).chosen(len(nodes), budget.rate)
    return [node for node, is_chosen in zip(nodes, chosen, strict=True) if is_chosen]


# ---- on a node -----------------------------------------------------------------------------------


def with_own_budget(settings: RunSettings, risk: float) -> RunSettings:
    """The settings of a node whose budget falls with the mean risk of re-identification in its release.

    The idea is that of Sáinz-Pardo Díaz & López García (arXiv 2605.02372). Here no budget is above the run's, so that
    what the run states holds for every node.
    """
    assert settings.dp is not None
    own = max(settings.dp.epsilon * (1 - risk), LEAST_EPSILON)
    return replace(settings, dp_settings={**settings.dp_settings, "epsilon": own})


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
        return model.train_on_noisy_gradients(
            parameters,
            data,
            round_number=round_number,
            clip=dp.clip,
            noise_multiplier=node_multiplier(settings),
            learning_rate=dp.learning_rate,
            noise=noise,
        )
    update = model.train(parameters, data, round_number=round_number, rng=rng, state=state)
    if dp.mode == "central":
        return update
    current = flat(parameters)
    step = clipped(flat(update.parameters) - current, dp.clip)
    # two updates within the clip are up to twice the clip apart
    noisy = noise.gaussian(step, node_multiplier(settings) * 2 * dp.clip * (1 + SLACK))
    return Update(like(current + noisy, parameters), update.n_examples)


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
