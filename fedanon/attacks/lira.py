"""LiRA: was this person among the training rows of a model? Told by models of which the attacker knows who was in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, NotApplicableError
from fedanon.attacks.learning import Learner, ModelName, model_named
from fedanon.attacks.membership_scores import FALSE_ALARMS, caught
from fedanon.attacks.scene import Scene
from fedanon.attacks.shadow_models import Shadows, shadows
from fedanon.models.base import Model
from fedanon.models.scores import auc
from fedanon.parameters import parameter

FloatArray = NDArray[np.float64]


@ATTACKS.register("lira")
@dataclass(frozen=True, kw_only=True)
class Lira(Attack):
    r"""Likelihood-ratio attack (Carlini et al. 2022, online, with one variance for all people).

    Every shadow model is trained on the releases of a random half of the people. Of each person's log-odds
    :math:`\phi` in these models, those with and those without the person have the means :math:`\mu_{in}, \mu_{out}`;
    a model under attack says :math:`\phi`, and the score is

    .. math:: \log \mathcal N(\phi; \mu_{in}, \sigma_{in}^2) - \log \mathcal N(\phi; \mu_{out}, \sigma_{out}^2)

    with the variances averaged over people, as the authors advise for few shadow models. Every model is attacked in
    turn with the others as shadows. Rate: share of the members caught at 1 % false alarms; baseline: 1 %.
    """

    title = "Membership, likelihood ratio"
    meaning = "Someone who holds the model and people's records tells who was among those it was trained on."
    target = "model"

    model: ModelName = parameter("xgb", help="boosted trees ('xgb') or logistic regression ('lr')")
    profile: Literal["federation", "central"] = parameter(
        "federation",
        help="the federation's default model, or one release in one place and a hundred trees by xgboost's own"
        " defaults",
    )
    shadows: int = parameter(32, help="number of shadow models", at_least=4)
    people: int = parameter(4000, help="people drawn from the table; half of them are in each model", at_least=20)
    clients: int = parameter(10, help="clients of each federation", at_least=1)
    rounds: int = parameter(50, help="rounds of the federation", at_least=1)

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Train the shadows and attack each of them."""
        if scene.anonymizer is None:
            raise NotApplicableError("It needs the method, to make the releases of the shadow models.")
        found = shadows(scene, self._learner(), count=self.shadows + 1, people=self.people, rng=rng)
        scores = np.array([likelihood_ratio(found, attacked) for attacked in range(len(found.inside))])
        return judged(scores, found.inside)

    def _learner(self) -> Learner:
        if self.profile == "central":
            return Learner(model=_central(self.model), rounds=1 if self.model == "xgb" else self.rounds)
        return Learner(model=model_named(self.model), rounds=self.rounds, clients=self.clients)


def _central(name: ModelName) -> Model:
    if name == "lr":
        return model_named(name)
    # what xgboost does if nothing is set, on features as they stand
    own = {"eta": 0.3, "max_depth": 6, "colsample": 1.0, "max_step": 1e6, "n_trees": 100}
    return model_named(name, instances="leaves", **own)


def likelihood_ratio(found: Shadows, attacked: int) -> FloatArray:
    """The score of every person in one of the models, by all the others."""
    others = np.arange(len(found.inside)) != attacked
    said, inside = found.certainty[others], found.inside[others]
    return _log_density(found.certainty[attacked], said, inside) - _log_density(
        found.certainty[attacked], said, ~inside
    )


def _log_density(value: FloatArray, said: FloatArray, chosen: NDArray[np.bool_]) -> FloatArray:
    """Log of the normal density of each value, by the models chosen for each person; constants left out."""
    counts = chosen.sum(axis=0)
    mean = (said * chosen).sum(axis=0) / counts
    # a model that says the same whoever is in it has no variance at all
    variance = max(float((((said - mean) ** 2) * chosen).sum() / (counts - 1).sum()), 1e-12)
    return np.asarray(-((value - mean) ** 2) / (2 * variance) - np.log(variance) / 2)


def judged(scores: FloatArray, inside: NDArray[np.bool_]) -> Finding:
    """How many members are caught, over all models attacked; the tries on one person hang together."""
    successes = np.concatenate([caught(one, members) for one, members in zip(scores, inside, strict=True)])
    people = np.nonzero(inside)[1]
    details = {
        "auc": float(np.mean([auc(members, one) for one, members in zip(scores, inside, strict=True)])),
        "people": float(inside.shape[1]),
        "models": float(inside.shape[0]),
    }
    return Finding.of_tries(successes, FALSE_ALARMS, clusters=people, details=details)
