"""Membership inference: was this person among those a model was trained on?

Knows: the model, and the raw records of the people in question; for :class:`Lira` also the method and others' records,
to train shadow models with known members. Does: scores everyone by the model's confidence in their true label, as it
stands (:class:`MembershipLoss`) or against what shadow models with and without the person say (:class:`Lira`). Judged
by: the share of people classified correctly by the best threshold, or the share of members caught at 1 % false alarms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, RecordChances, require_members
from fedanon.attacks.context import AttackContext
from fedanon.attacks.learning import Learner, certainty, labels_of, model_named
from fedanon.data.table import Table
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.models import MODELS
from fedanon.models.base import Model, Parameters
from fedanon.models.encoding import Encoding
from fedanon.models.scores import auc
from fedanon.types import BoolArray, FloatArray, IndexArray

#: share of false alarms at which attacks on membership are compared (Carlini et al. 2022)
FALSE_ALARMS = 0.01


@ATTACKS.register("lira")
@dataclass(frozen=True, kw_only=True)
class Lira(Attack):
    r"""Likelihood-ratio attack (Carlini et al. 2022, online, with one variance for all people).

    Every shadow model is trained on the releases of a random half of the people. Of each person's log-odds
    :math:`\phi` in these models, those with and those without the person have the means :math:`\mu_{in}, \mu_{out}`;
    the model under attack gives :math:`\phi`, and the score is

    .. math:: \log \mathcal N(\phi; \mu_{in}, \sigma_{in}^2) - \log \mathcal N(\phi; \mu_{out}, \sigma_{out}^2)

    with the variances averaged over people, as the authors advise for few shadow models. Every model is attacked in
    turn with the others as shadows. Rate: share of the members caught at 1 % false alarms; baseline: 1 %.
    """

    title = "Membership, likelihood ratio"
    meaning = "Someone who holds the model and people's records finds out who was among those it was trained on."
    target = "model"

    model: str = parameter("xgb", help="model that is attacked: {models}")
    profile: Literal["federation", "central"] = parameter(
        "federation",
        help="the federation's default model, or one release in one place and a hundred trees with xgboost's own"
        " defaults",
    )
    shadows: int = parameter(32, help="number of shadow models", at_least=4)
    people: int = parameter(4000, help="people drawn from the table; half of them are in each model", at_least=20)
    nodes: int = parameter(10, help="nodes of each federation", at_least=1, aliases=("clients",))
    rounds: int = parameter(50, help="rounds of the federation", at_least=1)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Train the shadows and attack each of them."""
        if context.anonymizer is None:
            raise NotApplicableError("It needs the method, to make the releases of the shadow models.")
        found = train_shadows(context, self._learner(), count=self.shadows + 1, people=self.people, rng=rng)
        scores = np.array([likelihood_ratio(found, attacked) for attacked in range(len(found.inside))])
        return replace(judge_ratios(scores, found.inside), records=_by_record(scores, found))

    def _learner(self) -> Learner:
        if self.profile == "central":
            grows = MODELS[self.model].aggregation == "trees"  # all trees in one round
            return Learner(model=_central_model(self.model), rounds=1 if grows else self.rounds)
        return Learner(model=model_named(self.model), rounds=self.rounds, nodes=self.nodes)


def _central_model(name: str) -> Model:
    if MODELS[name].aggregation != "trees":
        return model_named(name)
    # xgboost's own defaults, on features as they are
    own = {"eta": 0.3, "max_depth": 6, "colsample": 1.0, "max_step": 1e6, "n_trees": 100}
    return model_named(name, instances="leaves", **own)


def likelihood_ratio(found: Shadows, attacked: int) -> FloatArray:
    """Compute the score of every person in one of the models, from all the others."""
    others = np.arange(len(found.inside)) != attacked
    said, inside = found.certainty[others], found.inside[others]
    return _log_density(found.certainty[attacked], said, inside) - _log_density(
        found.certainty[attacked], said, ~inside
    )


def _log_density(value: FloatArray, said: FloatArray, chosen: NDArray[np.bool_]) -> FloatArray:
    """Compute the log density of each value under the models chosen for each person, without constants."""
    counts = chosen.sum(axis=0)
    mean = (said * chosen).sum(axis=0) / counts
    # a model that says the same whoever is in it has no variance
    variance = max(float((((said - mean) ** 2) * chosen).sum() / (counts - 1).sum()), 1e-12)
    return np.asarray(-((value - mean) ** 2) / (2 * variance) - np.log(variance) / 2)


def judge_ratios(scores: FloatArray, inside: NDArray[np.bool_]) -> Finding:
    """Judge how many members are caught over all models attacked; the tries on one person are dependent."""
    successes = np.concatenate([catch_members(one, members) for one, members in zip(scores, inside, strict=True)])
    people = np.nonzero(inside)[1]
    details = {
        "auc": float(np.mean([auc(members, one) for one, members in zip(scores, inside, strict=True)])),
        "people": float(inside.shape[1]),
        "models": float(inside.shape[0]),
    }
    return Finding.from_tries(successes, FALSE_ALARMS, clusters=people, details=details)


def _by_record(scores: FloatArray, found: Shadows) -> RecordChances:
    """How often each person is caught in the models they are in: even ones give the ranks, odd ones the chances.

    Every row of a person has the person's chance.
    """
    caught = np.zeros(scores.shape)
    for one, members, into in zip(scores, found.inside, caught, strict=True):
        into[members] = catch_members(one, members)
    ranks, chances = (
        caught[first::2].sum(axis=0) / np.maximum(found.inside[first::2].sum(axis=0), 1) for first in (0, 1)
    )
    person = found.person_of_row
    guesses = np.full(len(person), FALSE_ALARMS)
    return RecordChances(found.rows, ranks[person], chances[person], guesses, person)


@dataclass(frozen=True, eq=False)
class Shadows:
    """What the shadow models say of every person, and who was in which.

    Parameters
    ----------
    certainty : models x people, log-odds of the true label (the mean over the rows of a person).
    inside : models x people.
    rows : of the table that belong to these people.
    person_of_row : the person of each of these rows.
    """

    certainty: NDArray[np.float64]
    inside: NDArray[np.bool_]
    rows: IndexArray
    person_of_row: IndexArray


def train_shadows(
    context: AttackContext, learner: Learner, *, count: int, people: int, rng: np.random.Generator
) -> Shadows:
    """Train ``count`` models, each on a random half of the same people.

    Every person is in exactly half of the models (in half of count - 1 or count + 1, if the count is odd).

    Parameters
    ----------
    context : the table and the method.
    learner : how a model is trained.
    count : number of models.
    people : how many are drawn from the table; all, if it has fewer.
    rng : draws people and halves.
    """
    rows, person = _draw_people(context.table, people, rng)
    table = context.table.select_rows(rows)
    labels = labels_of(table)
    encoding = Encoding.from_schema(table.schema)
    features = encoding.encode_table(table)
    inside = np.argsort(rng.random((count, int(person.max()) + 1)), axis=0) < count // 2
    found = []
    for number, members in enumerate(inside):
        half = table.select_rows(np.flatnonzero(members[person]))
        parameters = learner.fit(learner.releases(context, half, f"shadow {number}"), encoding, rng)
        found.append(certainty(learner.model, parameters, features, labels))
    counts = np.bincount(person)
    said = np.array([np.bincount(person, weights=one) / counts for one in found])
    return Shadows(said, inside, rows, person)


def _draw_people(table: Table, people: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Draw people, and return their rows and the number of each row's person."""
    person = table.person_of_row.astype(np.int64)
    chosen = np.isin(person, rng.permutation(table.n_units)[:people])
    rows = np.flatnonzero(chosen)
    return rows, np.unique(person[rows], return_inverse=True)[1]


@ATTACKS.register("membership_loss")
@dataclass(frozen=True, kw_only=True)
class MembershipLoss(Attack):
    r"""Threshold on the loss (Yeom et al. 2018): a member is one with :math:`-\log p_y < \tau`.

    The model is trained on the release of the context's members. :math:`\tau` is the best threshold for one half of
    equal numbers of members and others, and is judged on the other half. Rate: share classified correctly; baseline:
    one half.
    """

    title = "Membership, loss threshold"
    meaning = "Someone who holds the model and people's records tells members from others by the model's confidence."
    target = "model"

    model: str = parameter("xgb", help="model that is attacked: {models}")
    rounds: int = parameter(100, help="rounds of training", at_least=1)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Train on the members' release, then separate members from others."""
        members = require_members(context)
        labels_of(members.table)
        learner = Learner(model=model_named(self.model), rounds=self.rounds)
        parameters = learner.fit([members.release], Encoding.from_schema(context.table.schema), rng)
        tables = members.table, members.control
        certainties = [_certainty_of_people(learner, parameters, table, rng) for table in tables]
        size = min(map(len, certainties))
        scores = np.concatenate([one[:size] for one in certainties])
        return judge_losses(scores, np.arange(len(scores)) < size)


def _certainty_of_people(
    learner: Learner, parameters: Parameters, table: Table, rng: np.random.Generator
) -> FloatArray:
    """Compute the mean certainty over each person's rows, people in random order."""
    features = Encoding.from_schema(table.schema).encode_table(table)
    rows = certainty(learner.model, parameters, features, labels_of(table))
    if table.persons is not None:
        rows = np.bincount(table.persons, weights=rows) / np.bincount(table.persons)
    return rng.permutation(rows)


def judge_losses(scores: FloatArray, inside: NDArray[np.bool_]) -> Finding:
    """Judge a threshold chosen on every other person and used on the rest; order is random among members and others."""
    learn = np.arange(len(scores)) % 2 == 0
    threshold = best_threshold(scores[learn], inside[learn])
    right = (scores[~learn] >= threshold) == inside[~learn]
    details = {
        "auc": auc(inside, scores),
        "caught_at_1_percent_false_alarms": float(catch_members(scores, inside, FALSE_ALARMS).mean()),
    }
    return Finding.from_tries(right.astype(float), 0.5, details=details)


def best_threshold(scores: FloatArray, inside: NDArray[np.bool_]) -> float:
    """Find the score from which on to say member, so that most are classified correctly; infinite if never is best."""
    values, place = np.unique(scores, return_inverse=True)
    gain = np.bincount(place, weights=np.where(inside, 1.0, -1.0))
    # members minus others among those at a value or above it
    ahead = np.append(np.cumsum(gain[::-1])[::-1], 0.0)
    return float(np.append(values, np.inf)[int(np.argmax(ahead))])


def catch_members(scores: FloatArray, inside: BoolArray, false_alarms: float = FALSE_ALARMS) -> FloatArray:
    """Compute the chance of every member to be caught if exactly ``false_alarms`` of the others are taken for members.

    Those who score above a threshold are caught, and of those at it as many as the share allows, so that a score
    without information catches ``false_alarms`` of the members, however many ties it has.

    Parameters
    ----------
    scores : high where the attacker suspects a member.
    inside : who is a member.
    false_alarms : share of the others who may be taken for members.
    """
    others = np.sort(scores[~inside])[::-1]
    allowed = false_alarms * len(others)
    threshold = others[min(int(allowed), len(others) - 1)]
    above, at = int((others > threshold).sum()), int((others == threshold).sum())
    chance = (allowed - above) / at
    members = scores[inside]
    return np.where(members > threshold, 1.0, np.where(members == threshold, chance, 0.0))
