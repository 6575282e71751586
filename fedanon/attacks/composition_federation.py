"""Composition in a federation: every hospital releases its own part, and some patients attend two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, NotApplicableError
from fedanon.attacks.hospitals import Candidates, IndexArray, judge, people_of, prepared, release_of_each
from fedanon.attacks.scene import Scene
from fedanon.parameters import parameter


@ATTACKS.register("composition_federation")
@dataclass(frozen=True, kw_only=True)
class CompositionFederation(Attack):
    """:class:`~fedanon.attacks.composition.Composition` over all hospitals of a federation.

    The people are dealt out to ``hospitals`` at random; the share ``second`` of them, drawn at random, also attends
    another one, each other with equal chance, so that every pair of hospitals shares some. Every hospital anonymises
    its patients alone with the method of the scene. Rate: patients of two hospitals whose two classes have one
    sensitive value in common. Baseline: one value in the class of their first hospital alone.
    """

    title = "Composition in a federation"
    meaning = "The releases of a federation's hospitals together give away the sensitive value of a patient of two."
    target = "federation"

    hospitals: int = parameter(10, help="number of hospitals", at_least=2)
    second: float = parameter(0.05, help="share of the people who attend a second hospital", at_least=0, at_most=1)
    column: str = parameter(
        "", help="sensitive column; the schema's first by default; a quasi-identifier is then no longer one"
    )

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Deal out the people, release, intersect."""
        table, column = prepared(scene, self.column)
        persons = people_of(table)
        if persons.count < self.hospitals:
            raise NotApplicableError(f"The table holds {persons.count} people, fewer than hospitals.")
        first, second = (of_person[persons.labels] for of_person in self._attended(persons.count, rng))
        rows_of = [np.flatnonzero((first == h) | (second == h)) for h in range(self.hospitals)]
        targets = np.flatnonzero(second >= 0)
        if not targets.size:
            raise NotApplicableError("No one attends a second hospital.")
        releases = release_of_each(scene, table, column, rows_of)
        at_first, at_second = (_possible(releases, where[targets], targets) for where in (first, second))
        classes = _classes(releases, first[targets], targets)
        return judge(at_first & at_second, [at_first, at_second], classes)

    def _attended(self, people: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
        """The hospital of every person, and the second one of those who attend two, else -1."""
        home = rng.permutation(people) % self.hospitals
        other = (home + 1 + rng.integers(self.hospitals - 1, size=people)) % self.hospitals
        return home, np.where(rng.random(people) < self.second, other, -1)


def _possible(releases: Sequence[Candidates], where: IndexArray, targets: IndexArray) -> NDArray[np.bool_]:
    """What the hospital at which each target is leaves possible."""
    possible = np.empty((len(targets), releases[0].possible.shape[1]), dtype=bool)
    for hospital, release in enumerate(releases):
        possible[where == hospital] = release.of(targets[where == hospital])
    return possible


def _classes(releases: Sequence[Candidates], where: IndexArray, targets: IndexArray) -> IndexArray:
    """A number for every class of every hospital, -1 for suppressed targets."""
    classes = np.full(len(targets), -1, dtype=np.int64)
    before = 0
    for hospital, release in enumerate(releases):
        label = release.classes_of(targets[where == hospital])
        classes[where == hospital] = np.where(label < 0, -1, label + before)
        before += len(release.possible)
    return classes
