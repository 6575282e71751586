"""Composition: several hospitals release alone; who is in all of them is told apart by all that they publish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, NotApplicableError
from fedanon.attacks.context import AttackContext
from fedanon.attacks.sensitive_values import sensitive_column
from fedanon.data.groups import Groups
from fedanon.data.schema import Role, Schema
from fedanon.data.table import Table
from fedanon.fields import parameter
from fedanon.types import IndexArray


@ATTACKS.register("composition")
@dataclass(frozen=True, kw_only=True)
class Composition(Attack):
    r"""Share of the people in m releases for whom the classes they are in have one sensitive value in common.

    .. math:: \frac1n \sum_i \Big[ \Big| \bigcap_{j=1}^m V_j(i) \Big| = 1 \Big]

    with :math:`V_j(i)` the values in the class of person i in release j (Ganta, Kasiviswanathan & Smith 2008). m
    hospitals have ``people`` each, of whom ``shared`` are in all, and anonymise alone with the method of the context.
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

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Deal out the people, release, intersect."""
        table, column = prepared(context, self.column)
        persons = people_of(table)
        shared, alone = self._sizes(persons.count)
        owner = _dealt(persons.count, shared, alone, self.hospitals, rng)[persons.labels]
        rows_of = [np.flatnonzero((owner == 0) | (owner == h)) for h in range(1, self.hospitals + 1)]
        targets = np.flatnonzero(owner == 0)
        releases = release_of_each(context, table, column, rows_of)
        possible = [release.possible_for(targets) for release in releases]
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


# ---- Composition in a federation -----------------------------------------------------------------


@ATTACKS.register("composition_federation")
@dataclass(frozen=True, kw_only=True)
class CompositionFederation(Attack):
    """:class:`~fedanon.attacks.composition.Composition` over all hospitals of a federation.

    The people are dealt out to ``hospitals`` at random; the share ``second`` of them, drawn at random, also attends
    another one, each other with equal chance, so that every pair of hospitals shares some. Every hospital anonymises
    its patients alone with the method of the context. Rate: patients of two hospitals whose two classes have one
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

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Deal out the people, release, intersect."""
        table, column = prepared(context, self.column)
        persons = people_of(table)
        if persons.count < self.hospitals:
            raise NotApplicableError(f"The table holds {persons.count} people, fewer than hospitals.")
        first, second = (of_person[persons.labels] for of_person in self._attended(persons.count, rng))
        rows_of = [np.flatnonzero((first == h) | (second == h)) for h in range(self.hospitals)]
        targets = np.flatnonzero(second >= 0)
        if not targets.size:
            raise NotApplicableError("No one attends a second hospital.")
        releases = release_of_each(context, table, column, rows_of)
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
        possible[where == hospital] = release.possible_for(targets[where == hospital])
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


# ---- Hospitals that release alone and share patients ---------------------------------------------


@dataclass(frozen=True, eq=False)
class Candidates:
    """What the release of one hospital leaves possible.

    Parameters
    ----------
    rows : the rows of the whole table that the hospital has, in order.
    labels : equivalence class of each; -1 where it is suppressed.
    possible : for every class, which values it holds; a row more, the last, for those of whom nothing is published.
    """

    rows: IndexArray
    labels: NDArray[np.int32]
    possible: NDArray[np.bool_]

    def possible_for(self, targets: IndexArray) -> NDArray[np.bool_]:
        """Which values each of ``targets``, rows of the whole table that the hospital has, may have."""
        return self.possible[self.classes_of(targets)]

    def classes_of(self, targets: IndexArray) -> IndexArray:
        """The class of each of ``targets``."""
        return self.labels[np.searchsorted(self.rows, targets)].astype(np.int64)


def release_of_each(
    context: AttackContext, table: Table, column: str, rows_of: Sequence[IndexArray]
) -> list[Candidates]:
    """A release by every hospital alone, and what it leaves possible of ``column``."""
    codes = _codes(table, column)
    return [_released(context, table, codes, rows, f"hospital {i}") for i, rows in enumerate(rows_of)]


def _released(context: AttackContext, table: Table, codes: IndexArray, rows: IndexArray, purpose: str) -> Candidates:
    classes = context.make_release(table.take(rows), purpose).classes
    possible = np.ones((classes.count + 1, int(codes.max()) + 1), dtype=bool)
    possible[: classes.count] = False
    shown = ~classes.suppressed
    possible[classes.labels[shown], codes[rows][shown]] = True
    return Candidates(rows, classes.labels, possible)


def _codes(table: Table, column: str) -> IndexArray:
    """Numbers of the values, the same in every hospital."""
    codes, values = pd.factorize(table.frame[column].astype("string"), sort=True)
    return np.where(codes < 0, len(values), codes).astype(np.int64)


def judge(together: NDArray[np.bool_], alone: Sequence[NDArray[np.bool_]], clusters: IndexArray) -> Finding:
    """Who is left with one value once all that is possible in each release alone is intersected.

    Baseline: who is already left with one value by the first release. ``clusters`` numbers the classes there.
    """
    unique = together.sum(axis=1) == 1
    before = [possible.sum(axis=1) == 1 for possible in alone]
    details = {
        "unique_in_any_release_alone": float(np.mean(np.any(before, axis=0))),
        "unique_only_together": float(np.mean(unique & ~np.any(before, axis=0))),
        "values_left": float(together.sum(axis=1).mean()),
    }
    baseline = float(np.mean(before[0]))
    # those of whom the first release publishes nothing have the number -1
    return Finding.from_tries(unique.astype(float), baseline, clusters=clusters + 1, details=details)


def prepared(context: AttackContext, column: str) -> tuple[Table, str]:
    """The table with ``column`` published as it is, also where it was a quasi-identifier; and its name."""
    if context.anonymizer is None:
        raise NotApplicableError("It needs the method, to make the releases of several hospitals.")
    table = context.table
    if column in {c.name for c in table.columns}:
        return table.recoded(_with_sensitive(table.schema, column)), column
    return table, sensitive_column(table.schema, column)


def _with_sensitive(schema: Schema, column: str) -> Schema:
    return schema.replacing(replace(schema[column], role=Role.SENSITIVE))


def people_of(table: Table) -> Groups:
    """The rows of each person."""
    return Groups.from_labels(table.person_of_row)
