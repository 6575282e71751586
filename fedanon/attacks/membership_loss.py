"""Membership by loss: those of whom the model is surest were among its training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, members_of
from fedanon.attacks.learning import Learner, ModelName, certainty, labels_of, model_named
from fedanon.attacks.membership_scores import FALSE_ALARMS, caught
from fedanon.attacks.scene import Scene
from fedanon.data.table import Table
from fedanon.models.base import Parameters
from fedanon.models.encoding import Encoding
from fedanon.models.scores import auc
from fedanon.parameters import parameter

FloatArray = NDArray[np.float64]


@ATTACKS.register("membership_loss")
@dataclass(frozen=True, kw_only=True)
class MembershipLoss(Attack):
    r"""Threshold on the loss (Yeom et al. 2018): a member is one with :math:`-\log p_y < \tau`.

    The model is trained on the release of the scene's members. :math:`\tau` is the best threshold for one half of equal
    numbers of members and others, and is judged on the other half. Rate: share told right; baseline: one half.
    """

    title = "Membership, loss threshold"
    meaning = "Someone who holds the model and people's records tells members from others by the model's confidence."
    target = "model"

    model: ModelName = parameter("xgb", help="boosted trees ('xgb') or logistic regression ('lr')")
    rounds: int = parameter(100, help="rounds of training", at_least=1)

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Train on the members' release, then tell members from others."""
        members = members_of(scene)
        labels_of(members.table)
        learner = Learner(model=model_named(self.model), rounds=self.rounds)
        parameters = learner.fit([members.release], Encoding.of(scene.table.schema), rng)
        sure = [_certainty_of_people(learner, parameters, table, rng) for table in (members.table, members.control)]
        size = min(map(len, sure))
        scores = np.concatenate([one[:size] for one in sure])
        return judged(scores, np.arange(len(scores)) < size)


def _certainty_of_people(
    learner: Learner, parameters: Parameters, table: Table, rng: np.random.Generator
) -> FloatArray:
    """The mean over each person's rows, people in random order."""
    features = Encoding.of(table.schema).table(table)
    rows = certainty(learner.model, parameters, features, labels_of(table))
    if table.persons is not None:
        rows = np.bincount(table.persons, weights=rows) / np.bincount(table.persons)
    return rng.permutation(rows)


def judged(scores: FloatArray, inside: NDArray[np.bool_]) -> Finding:
    """Who is told right by a threshold chosen on every other person and used on the rest; order is random within."""
    learn = np.arange(len(scores)) % 2 == 0
    threshold = best_threshold(scores[learn], inside[learn])
    right = (scores[~learn] >= threshold) == inside[~learn]
    details = {
        "auc": auc(inside, scores),
        "caught_at_1_percent_false_alarms": float(caught(scores, inside, FALSE_ALARMS).mean()),
    }
    return Finding.of_tries(right.astype(float), 0.5, details=details)


def best_threshold(scores: FloatArray, inside: NDArray[np.bool_]) -> float:
    """The score from which on to say member, so that most are told right; infinite if never is best."""
    values, place = np.unique(scores, return_inverse=True)
    gain = np.bincount(place, weights=np.where(inside, 1.0, -1.0))
    # members less others among those at a value or above it
    ahead = np.append(np.cumsum(gain[::-1])[::-1], 0.0)
    return float(np.append(values, np.inf)[int(np.argmax(ahead))])
