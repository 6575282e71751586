"""Intersection: releases of the same people, one after the other, expose together what none exposes alone.

Knows: everybody's quasi-identifiers and who is in which release, hence in which class. Does: intersects the values of a
person's classes (who stayed) and compares the counts of classes that differ by few people (who left, who came), until
nothing more follows. Judged by: the share of people who are left with one value, against those who already are by
their first release alone. It assumes that a person's value does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.composition import judge_intersection
from fedanon.attacks.context import AttackContext, SeenRelease
from fedanon.attacks.sensitive_values import sensitive_column, values_of
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.types import BoolArray, FloatArray, IndexArray, IntArray, Rng

#: people, and how often they have each value at least and at most
Bounds = tuple[IndexArray, FloatArray, FloatArray]
#: people, others, and how much more often people have each value than others, at least and at most
Difference = tuple[IndexArray, IndexArray, FloatArray, FloatArray]
#: how often all that is known is gone through again
MAX_ROUNDS = 50


@ATTACKS.register("intersection")
@dataclass(frozen=True, kw_only=True)
class Intersection(Attack):
    r"""Share of the people in a series of releases for whom all of them together leave one sensitive value.

    The releases are those of the context. Where it has one only, a second is made of a random ``share`` of its people,
    by the same method and without regard to the first: what a second month would be if nobody thought of it. Baseline:
    one value in the class of the person's first release. ``certain_by_sets`` counts the people for whom the values of
    their classes have one in common, without regard to how often they occur. ``posterior`` is the mean of the highest
    probability that the counts of a person's classes give to one value,

    .. math:: P(v) \propto \prod_j \frac{n_j(v)}{n_j} \Big/ P_0(v)^{m-1}

    with the distribution P_0 of all values in all m releases; ``posterior_first`` that of the first release alone.
    """

    title = "Intersection of releases"
    meaning = "Releases of the same people, one after the other, together give away a person's sensitive value."
    target = "release"

    share: float = parameter(0.8, help="people in the second release, where only one is given", at_least=0, at_most=1)
    column: str = parameter("", help="sensitive column; the schema's first by default")

    def run(self, context: AttackContext, rng: Rng) -> Finding:
        """Put together what all releases say."""
        column = sensitive_column(context.table.schema, self.column)
        releases = context.series or self._make_second(context, rng)
        codes, _, size = values_of([seen.frame for seen in releases], context.table.schema, column)
        known = _Knowledge(releases, codes, size)
        by_sets = int((known.possible.sum(axis=1) == 1).sum())
        known.deduce()
        found = judge_intersection(known.possible, [known.at_first], known.first_class)
        several = known.appearances > 1
        certain = known.possible.sum(axis=1) == 1
        details = {
            "releases": float(len(releases)),
            "certain_people": float(certain.sum()),
            "certain_by_sets": float(by_sets),
            "people_in_several": float(several.sum()),
            "certain_in_several": float((certain & several).sum()),
            "posterior": float(known.posterior().max(axis=1).mean()),
            "posterior_first": float(known.first_shares.max(axis=1).mean()),
        }
        return replace(found, details={"values_left": found.details["values_left"], **details})

    def _make_second(self, context: AttackContext, rng: Rng) -> list[SeenRelease]:
        if context.anonymizer is None:
            raise NotApplicableError("It needs several releases of the same people, or the method to make another.")
        table = context.table
        if table.n_units < len(table):
            raise NotApplicableError("It takes tables with one row per person.")
        rows = np.flatnonzero(rng.random(len(table)) < self.share)
        if not len(rows):
            raise NotApplicableError("No one is in the second release.")
        later = table.select_rows(rows)
        names = [str(row) for row in range(len(table))]
        second = context.make_release(later, "second release")
        return [SeenRelease.of(context.release, names), SeenRelease.of(second, [names[row] for row in rows])]


class _Knowledge:
    """What an attacker knows of every person; it only grows."""

    def __init__(self, releases: Sequence[SeenRelease], codes: Sequence[IntArray], size: int) -> None:
        names = sorted({name for seen in releases for name in seen.people})
        if not names:
            raise NotApplicableError("The releases show no one.")
        number = {name: i for i, name in enumerate(names)}
        self._members: list[list[IndexArray]] = []
        self._counts: list[FloatArray] = []
        self.possible: BoolArray = np.ones((len(names), size), dtype=bool)
        self.first_class: IndexArray = np.full(len(names), -1, dtype=np.int64)
        self.appearances: IndexArray = np.zeros(len(names), dtype=np.int64)
        before = 0
        for seen, values in zip(releases, codes, strict=True):
            people = np.array([number[name] for name in seen.people], dtype=np.int64)
            classes = int(seen.labels.max(initial=-1)) + 1
            counts = np.zeros((classes, size))
            np.add.at(counts, (seen.labels, values), 1)
            ends = np.cumsum(np.bincount(seen.classes, minlength=classes))[:-1]
            self._members.append(np.split(people[np.argsort(seen.classes, kind="stable")], ends))
            self._counts.append(counts)
            self.possible[people] &= counts[seen.classes] > 0
            new = self.first_class[people] < 0
            self.first_class[people[new]] = seen.classes[new] + before
            self.appearances[people] += 1
            before += classes
        every = np.concatenate(self._counts)
        self.first_shares: FloatArray = (every / every.sum(axis=1, keepdims=True))[self.first_class]
        self.at_first: BoolArray = self.first_shares > 0

    def deduce(self) -> None:
        """Draw conclusions until there are none."""
        nobody = np.empty(0, dtype=np.int64)
        bounds = [list(self._bounds(release)) for release in range(len(self._counts))]
        alone = [(people, nobody, low, high) for each in bounds for people, low, high in each]
        facts = [*alone, *self._differences(bounds)]
        for _ in range(MAX_ROUNDS):
            before = int(self.possible.sum())
            for gained, lost, low, high in facts:
                self._narrow(gained, lost, low, high)
                self._narrow(lost, gained, -high, -low)
            if int(self.possible.sum()) == before:
                return

    def _differences(self, facts: list[list[Bounds]]) -> Iterator[Difference]:
        """What classes of two releases say of those who are in one of them only; where half or more are in both."""
        for one in range(len(facts)):
            for other in range(one + 1, len(facts)):
                where = np.full(len(self.possible), -1, dtype=np.int64)
                for label, (people, _, _) in enumerate(facts[other]):
                    where[people] = label
                for people, low, high in facts[one]:
                    for label in np.unique(where[people][where[people] >= 0]):
                        others, other_low, other_high = facts[other][label]
                        shared = int((where[people] == label).sum())
                        if 2 * shared >= min(len(people), len(others)):
                            gone = people[where[people] != label]
                            come = np.setdiff1d(others, people, assume_unique=True)
                            yield gone, come, low - other_high, high - other_low

    def _bounds(self, release: int) -> Iterator[Bounds]:
        """The people of every class, and how often they have each value, at least and at most."""
        for people, count in zip(self._members[release], self._counts[release], strict=True):
            # rows of nobody may have any of the values
            yield people, np.maximum(count - (count.sum() - len(people)), 0), count

    def _narrow(self, people: IndexArray, others: IndexArray, low: FloatArray, high: FloatArray) -> None:
        """Rule out and settle values of ``people``, given bounds of how much more often they have each than others."""
        if not len(people):
            return
        mine, theirs = self.possible[people], self.possible[others]
        sure, theirs_sure = mine & (mine.sum(axis=1) == 1)[:, None], theirs & (theirs.sum(axis=1) == 1)[:, None]
        most, least = high + theirs.sum(axis=0), low + theirs_sure.sum(axis=0)
        full = sure.sum(axis=0) >= most
        ruled_out = mine & full & ~sure
        if ruled_out.any():
            self.possible[people] = mine = mine & ~ruled_out
        needed = (mine.sum(axis=0) <= least) & (least > 0)
        settled = mine[:, needed].sum(axis=1) == 1
        if settled.any():
            self.possible[people[settled]] &= needed

    def posterior(self) -> FloatArray:
        """Probability of every value for every person, by the counts of their classes; 0 for what is ruled out."""
        every = np.concatenate(self._counts)
        prior = np.maximum(every.sum(axis=0) / every.sum(), 1e-12)
        with np.errstate(divide="ignore"):
            logs = np.where(self.possible, np.log(prior), -np.inf)
            for members, counts in zip(self._members, self._counts, strict=True):
                shares = np.log(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)) - np.log(prior)
                for people, row in zip(members, shares, strict=True):
                    logs[people] += row
        top = logs.max(axis=1, keepdims=True)
        chance = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        return np.asarray(chance / np.maximum(chance.sum(axis=1, keepdims=True), 1e-300))
