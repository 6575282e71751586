"""Composition: several nodes release alone; whoever is in more than one is exposed by what they publish together.

Knows: the quasi-identifiers of a person, and which nodes hold their record. Does: intersects the sensitive values that
the person's class has in each release. Judged by: the share of people who are left with one value, against those who
already are by the first release alone. Two attacks: :class:`Composition` of a few nodes that share the same people, and
:class:`CompositionFederation` of all nodes of a federation, where every pair shares some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.attacks.sensitive_values import sensitive_column
from fedanon.data.groups import Groups
from fedanon.data.schema import Role, Schema
from fedanon.data.table import Table
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.types import IndexArray


@ATTACKS.register("composition")
@dataclass(frozen=True, kw_only=True)
class Composition(Attack):
    r"""Share of the people in m releases for whom the classes they are in have one sensitive value in common.

    .. math:: \frac1n \sum_i \Big[ \Big| \bigcap_{j=1}^m V_j(i) \Big| = 1 \Big]

    with :math:`V_j(i)` the values in the class of person i in release j (Ganta, Kasiviswanathan & Smith 2008). m nodes
    have ``people`` each, of whom ``shared`` are in all, and anonymize alone with the method of the context. A
    suppressed person may have any value. Baseline: one value in the class of the first release alone.

    Where the table is too small for that many people, all numbers are reduced in proportion.
    """

    title = "Composition"
    meaning = "The releases of several nodes together give away the sensitive value of a person they share."
    target = "release"

    nodes: int = parameter(2, help="nodes, with one release each", at_least=2, aliases=("hospitals",))
    people: int = parameter(3000, help="people of each node", at_least=2)
    shared: int = parameter(500, help="people whom all nodes have", at_least=1)
    column: str = parameter(
        "", help="sensitive column; the schema's first by default; a quasi-identifier is then no longer one"
    )

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Deal out the people, release, intersect."""
        table, column = _prepare(context, self.column)
        persons = _group_people(table)
        shared, alone = self._sizes(persons.count)
        owner = _deal(persons.count, shared, alone, self.nodes, rng)[persons.labels]
        rows_of = [np.flatnonzero((owner == 0) | (owner == node)) for node in range(1, self.nodes + 1)]
        targets = np.flatnonzero(owner == 0)
        releases = _release_alone(context, table, column, rows_of)
        possible = [release.possible_for(targets) for release in releases]
        found = judge_intersection(np.logical_and.reduce(possible), possible, releases[0].classes_of(targets))
        sizes = {"releases": self.nodes, "people": shared + alone, "shared": shared}
        return replace(found, details={**found.details, **sizes})

    def _sizes(self, people: int) -> tuple[int, int]:
        """Return the number of people in all nodes, and of further people in each."""
        wanted = self.shared + self.nodes * (self.people - self.shared)
        if self.shared > self.people:
            raise NotApplicableError(f"{self.shared} people cannot be shared by nodes of {self.people}.")
        scale = min(1.0, people / wanted)
        shared, each = int(self.shared * scale), int(self.people * scale)
        if shared < 1:
            raise NotApplicableError(f"The table holds {people} people, too few for {self.nodes} nodes.")
        return shared, each - shared


def _deal(people: int, shared: int, alone: int, nodes: int, rng: np.random.Generator) -> IndexArray:
    """Assign a node (1, 2, ...) to every person, 0 to those who are in all, -1 to those who are in none."""
    owner = np.full(people, -1, dtype=np.int64)
    drawn = rng.permutation(people)
    owner[drawn[:shared]] = 0
    owner[drawn[shared : shared + alone * nodes]] = 1 + np.arange(alone * nodes) % nodes
    return owner


@ATTACKS.register("composition_federation")
@dataclass(frozen=True, kw_only=True)
class CompositionFederation(Attack):
    """:class:`Composition` over all nodes of a federation.

    The people are dealt out to ``nodes`` at random; the share ``second`` of them, drawn at random, is also at another
    one, each other with equal chance, so that every pair of nodes shares some. Every node anonymizes alone with the
    method of the context. Rate: people at two nodes whose two classes have one sensitive value in common. Baseline: one
    value in the class of their first node alone.
    """

    title = "Composition in a federation"
    meaning = "The releases of a federation's nodes together give away the sensitive value of a person at two of them."
    target = "federation"

    nodes: int = parameter(10, help="number of nodes", at_least=2, aliases=("hospitals",))
    second: float = parameter(0.05, help="share of the people who are at a second node", at_least=0, at_most=1)
    column: str = parameter(
        "", help="sensitive column; the schema's first by default; a quasi-identifier is then no longer one"
    )

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Deal out the people, release, intersect."""
        table, column = _prepare(context, self.column)
        persons = _group_people(table)
        if persons.count < self.nodes:
            raise NotApplicableError(f"The table holds {persons.count} people, fewer than nodes.")
        first, second = (of_person[persons.labels] for of_person in self._assign(persons.count, rng))
        rows_of = [np.flatnonzero((first == node) | (second == node)) for node in range(self.nodes)]
        targets = np.flatnonzero(second >= 0)
        if not targets.size:
            raise NotApplicableError("No one is at a second node.")
        releases = _release_alone(context, table, column, rows_of)
        at_first, at_second = (_possible_values(releases, where[targets], targets) for where in (first, second))
        classes = _number_classes(releases, first[targets], targets)
        return judge_intersection(at_first & at_second, [at_first, at_second], classes)

    def _assign(self, people: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
        """Assign a node to every person, and a second one to those who are at two, else -1."""
        home = rng.permutation(people) % self.nodes
        other = (home + 1 + rng.integers(self.nodes - 1, size=people)) % self.nodes
        return home, np.where(rng.random(people) < self.second, other, -1)


def _possible_values(releases: Sequence[Candidates], where: IndexArray, targets: IndexArray) -> NDArray[np.bool_]:
    """Return the values that the node of each target leaves possible."""
    possible = np.empty((len(targets), releases[0].possible.shape[1]), dtype=bool)
    for node, release in enumerate(releases):
        possible[where == node] = release.possible_for(targets[where == node])
    return possible


def _number_classes(releases: Sequence[Candidates], where: IndexArray, targets: IndexArray) -> IndexArray:
    """Number the classes of all nodes apart, -1 for suppressed targets."""
    classes = np.full(len(targets), -1, dtype=np.int64)
    before = 0
    for node, release in enumerate(releases):
        label = release.classes_of(targets[where == node])
        classes[where == node] = np.where(label < 0, -1, label + before)
        before += len(release.possible)
    return classes


@dataclass(frozen=True, eq=False)
class Candidates:
    """What the release of one node leaves possible.

    Parameters
    ----------
    rows : the rows of the whole table that the node has, in order.
    labels : equivalence class of each; -1 where it is suppressed.
    possible : per class, which values it holds; one more row, the last, for those of whom nothing is published.
    """

    rows: IndexArray
    labels: NDArray[np.int32]
    possible: NDArray[np.bool_]

    def possible_for(self, targets: IndexArray) -> NDArray[np.bool_]:
        """Return which values each of ``targets``, rows of the whole table that the node has, may have."""
        return self.possible[self.classes_of(targets)]

    def classes_of(self, targets: IndexArray) -> IndexArray:
        """Return the class of each of ``targets``."""
        return self.labels[np.searchsorted(self.rows, targets)].astype(np.int64)


def _release_alone(
    context: AttackContext, table: Table, column: str, rows_of: Sequence[IndexArray]
) -> list[Candidates]:
    """Make a release per node, and keep what it leaves possible of ``column``."""
    codes = _number_values(table, column)
    # the purpose seeds each release: another word would change published results
    return [_make_candidates(context, table, codes, rows, f"hospital {i}") for i, rows in enumerate(rows_of)]


def _make_candidates(
    context: AttackContext, table: Table, codes: IndexArray, rows: IndexArray, purpose: str
) -> Candidates:
    classes = context.make_release(table.select_rows(rows), purpose).classes
    possible = np.ones((classes.count + 1, int(codes.max()) + 1), dtype=bool)
    possible[: classes.count] = False
    shown = ~classes.suppressed
    possible[classes.labels[shown], codes[rows][shown]] = True
    return Candidates(rows, classes.labels, possible)


def _number_values(table: Table, column: str) -> IndexArray:
    """Number the values, alike at every node."""
    codes, values = pd.factorize(table.frame[column].astype("string"), sort=True)
    return np.where(codes < 0, len(values), codes).astype(np.int64)


def judge_intersection(joint: NDArray[np.bool_], alone: Sequence[NDArray[np.bool_]], clusters: IndexArray) -> Finding:
    """Judge who is left with one value once what each release alone leaves possible is intersected.

    Baseline: who is already left with one value by the first release. ``clusters`` numbers the classes there.
    """
    unique = joint.sum(axis=1) == 1
    before = [possible.sum(axis=1) == 1 for possible in alone]
    details = {
        "unique_in_any_release_alone": float(np.mean(np.any(before, axis=0))),
        "unique_only_together": float(np.mean(unique & ~np.any(before, axis=0))),
        "values_left": float(joint.sum(axis=1).mean()),
    }
    baseline = float(np.mean(before[0]))
    # those of whom the first release publishes nothing have the number -1
    return Finding.from_tries(unique.astype(float), baseline, clusters=clusters + 1, details=details)


def _prepare(context: AttackContext, column: str) -> tuple[Table, str]:
    """Return the table with ``column`` published as it is, even where it was a quasi-identifier, and its name."""
    if context.anonymizer is None:
        raise NotApplicableError("It needs the method, to make the releases of several nodes.")
    table = context.table
    if column in {c.name for c in table.columns}:
        return table.recoded(_with_sensitive(table.schema, column)), column
    return table, sensitive_column(table.schema, column)


def _with_sensitive(schema: Schema, column: str) -> Schema:
    return schema.replacing(replace(schema[column], role=Role.SENSITIVE))


def _group_people(table: Table) -> Groups:
    """Group the rows by person."""
    return Groups.from_labels(table.person_of_row)
