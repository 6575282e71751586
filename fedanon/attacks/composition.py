"""Composition: several hospitals release alone; who is in all of them is told apart by all that they publish."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, NotApplicableError
from fedanon.attacks.hospitals import IndexArray, judge, people_of, prepared, release_of_each
from fedanon.attacks.scene import Scene
from fedanon.parameters import parameter


@ATTACKS.register("composition")
@dataclass(frozen=True, kw_only=True)
class Composition(Attack):
    r"""Share of the people in m releases for whom the classes they are in have one sensitive value in common.

    .. math:: \frac1n \sum_i \Big[ \Big| \bigcap_{j=1}^m V_j(i) \Big| = 1 \Big]

    with :math:`V_j(i)` the values in the class of person i in release j (Ganta, Kasiviswanathan & Smith 2008). m
    hospitals have ``people`` each, of whom ``shared`` are in all, and anonymise alone with the method of the scene.
    A suppressed person may have any value. Baseline: one value in the class of the first release alone.

    Where the table is too small for that many people, all numbers are reduced in proportion.
    """

    title = "Composition"
    meaning = "The releases of several hospitals together give away the sensitive value of a patient they share."
    target = "release"

    hospitals: int = parameter(2, help="number of releases", at_least=2)
    people: int = parameter(3000, help="people of each hospital", at_least=2)
    shared: int = parameter(500, help="people whom all hospitals have", at_least=1)
    column: str = parameter(
        "", help="sensitive column; the schema's first by default; a quasi-identifier is then no longer one"
    )

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Deal out the people, release, intersect."""
        table, column = prepared(scene, self.column)
        persons = people_of(table)
        shared, alone = self._sizes(persons.count)
        owner = _dealt(persons.count, shared, alone, self.hospitals, rng)[persons.labels]
        rows_of = [np.flatnonzero((owner == 0) | (owner == h)) for h in range(1, self.hospitals + 1)]
        targets = np.flatnonzero(owner == 0)
        releases = release_of_each(scene, table, column, rows_of)
        possible = [release.of(targets) for release in releases]
        found = judge(np.logical_and.reduce(possible), possible, releases[0].classes_of(targets))
        sizes = {"hospitals": self.hospitals, "people": shared + alone, "shared": shared}
        return replace(found, details={**found.details, **sizes})

    def _sizes(self, people: int) -> tuple[int, int]:
        """People in all hospitals, and further people of each."""
        wanted = self.shared + self.hospitals * (self.people - self.shared)
        if self.shared > self.people:
            raise NotApplicableError(f"{self.shared} people cannot be shared by hospitals of {self.people}.")
        scale = min(1.0, people / wanted)
        shared, each = int(self.shared * scale), int(self.people * scale)
        if shared < 1:
            raise NotApplicableError(f"The table holds {people} people, too few for {self.hospitals} hospitals.")
        return shared, each - shared


def _dealt(people: int, shared: int, alone: int, hospitals: int, rng: np.random.Generator) -> IndexArray:
    """The hospital (1, 2, ...) of every person, 0 for those who are in all, -1 for those who are in none."""
    owner = np.full(people, -1, dtype=np.int64)
    drawn = rng.permutation(people)
    owner[drawn[:shared]] = 0
    owner[drawn[shared : shared + alone * hospitals]] = 1 + np.arange(alone * hospitals) % hospitals
    return owner
