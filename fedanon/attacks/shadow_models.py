"""Shadow models: many models of random halves of the same people, made as the attacked one is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks.learning import Learner, certainty, labels_of
from fedanon.attacks.scene import Scene
from fedanon.data.table import Table
from fedanon.models.encoding import Encoding


@dataclass(frozen=True, eq=False)
class Shadows:
    """What the models say of every person, and who was in which.

    Parameters
    ----------
    certainty : models x people, log-odds of the true label (the mean over the rows of a person).
    inside : models x people.
    """

    certainty: NDArray[np.float64]
    inside: NDArray[np.bool_]


def shadows(scene: Scene, learner: Learner, *, count: int, people: int, rng: np.random.Generator) -> Shadows:
    """Train ``count`` models, each on a random half of the same people.

    Every person is in exactly half of the models (in half of count - 1 or count + 1, if the count is odd).

    Parameters
    ----------
    scene : gives the table and the method.
    learner : how a model is made.
    count : number of models.
    people : how many are drawn from the table; all, if it has fewer.
    rng : draws people and halves.
    """
    table, person = _some_people(scene.table, people, rng)
    labels = labels_of(table)
    encoding = Encoding.of(table.schema)
    features = encoding.table(table)
    inside = np.argsort(rng.random((count, int(person.max()) + 1)), axis=0) < count // 2
    found = []
    for number, members in enumerate(inside):
        half = table.take(np.flatnonzero(members[person]))
        parameters = learner.fit(learner.releases(scene, half, f"shadow {number}"), encoding, rng)
        found.append(certainty(learner.model, parameters, features, labels))
    counts = np.bincount(person)
    return Shadows(np.array([np.bincount(person, weights=one) / counts for one in found]), inside)


def _some_people(table: Table, people: int, rng: np.random.Generator) -> tuple[Table, NDArray[np.int64]]:
    """The rows of people drawn at random, and the number of each row's person."""
    person = table.person_of_row.astype(np.int64)
    chosen = np.isin(person, rng.permutation(table.n_persons)[:people])
    rows = np.flatnonzero(chosen)
    return table.take(rows), np.unique(person[rows], return_inverse=True)[1]
