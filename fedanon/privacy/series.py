"""Series: what several releases of the same people leave open together, and the claim that follows from it.

A **cohort** is a set of rows that is always published whole inside one class. A person **stays** in it from one release
to another; a newcomer joins, a leaver goes. The attacker of this module knows everybody's quasi-identifiers, hence who
is in which cohort in which release, and reads off how often the cohort holds each value. All that is then known of a
cohort is one count per release and value.
What follows from these counts is judged by :mod:`fedanon.privacy.exchanges`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fedanon.data.schema import Numeric, Schema, Unit
from fedanon.data.table import Table, missing_mask, numbers, texts
from fedanon.errors import PrivacyViolationError
from fedanon.privacy.base import Claim, View
from fedanon.privacy.exchanges import Arc, possible_values
from fedanon.types import IntArray

#: what the carried columns of a row say together; None is a missing cell
Carried = tuple[str | None, ...]


@dataclass(frozen=True)
class Stay:
    """A row of a cohort, from the first release that shows it to the first that does not.

    Parameters
    ----------
    person : pseudonym of the person.
    value : number of what the row says in the carried columns.
    start : number of the first release that shows it, from 0.
    stop : number of the first release that no longer shows the row; None while it is shown.
    away : when the table did not have the person, from one release to before another; the row is a counterfeit there.
    """

    person: str
    value: int
    start: int
    stop: int | None = None
    away: tuple[tuple[int, int | None], ...] = ()

    def is_shown(self, release: int) -> bool:
        """Whether a release shows the row."""
        return self.start <= release and (self.stop is None or release < self.stop)

    def is_real(self, release: int) -> bool:
        """Whether a release shows the row for a person who is in its table."""
        gone = any(left <= release and (back is None or release < back) for left, back in self.away)
        return self.is_shown(release) and not gone

    def leave(self, release: int) -> Stay:
        """The stay of someone whom the table of a release does not have; the release no longer shows the row."""
        away = self.away if self.is_away else (*self.away, (release, None))
        return replace(self, stop=release, away=away)

    def come_back(self, release: int) -> Stay:
        """The stay of someone whom the table of a release has, or has again while the row was still shown."""
        return replace(self, away=(*self.away[:-1], (self.away[-1][0], release))) if self.is_away else self

    def until(self, releases: int) -> Stay:
        """The stay as it was known after so many releases."""
        stop = None if self.stop is None or self.stop >= releases else self.stop
        away = tuple(
            (left, None if back is None or back >= releases else back) for left, back in self.away if left < releases
        )
        return replace(self, stop=stop, away=away)

    @property
    def is_away(self) -> bool:
        """Whether the person has left and not come back."""
        return bool(self.away) and self.away[-1][1] is None


Cohort = tuple[Stay, ...]


@dataclass(frozen=True)
class History:
    """What was published for whom, over all releases of a series.

    Parameters
    ----------
    columns : the carried columns: all that are published as they are.
    least : of every protected column, how many values must stay possible for each person.
    values : what rows say in the carried columns; stays refer to it by number.
    cohorts : the stays of every cohort.
    releases : number of releases.
    """

    columns: tuple[str, ...]
    least: Mapping[str, int]
    values: tuple[Carried, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    releases: int = 0

    def until(self, releases: int) -> History:
        """The history as it was after so many releases."""
        cohorts = (tuple(stay.until(releases) for stay in each if stay.start < releases) for each in self.cohorts)
        return replace(self, cohorts=tuple(cohorts), releases=releases)

    def cohort_of_person(self, release: int) -> dict[str, int]:
        """The cohort in which a release shows each person of its table."""
        real = ((stay, c) for c, each in enumerate(self.cohorts) for stay in each if stay.is_real(release))
        return {stay.person: c for stay, c in real}

    def cohort_of_shown(self, release: int) -> dict[str, int]:
        """The cohort in which a release shows each person, counterfeit rows included."""
        return {stay.person: c for c, each in enumerate(self.cohorts) for stay in each if stay.is_shown(release)}

    def counterfeits(self, release: int) -> list[tuple[int, Carried]]:
        """Cohort and value of every row that a release shows for a person who is not in its table."""
        return [
            (number, self.values[stay.value])
            for number, cohort in enumerate(self.cohorts)
            for stay in cohort
            if stay.is_shown(release) and not stay.is_real(release)
        ]

    def is_enough(self, possible: Iterable[int]) -> bool:
        """Whether some possible values, by number, are enough in every protected column."""
        rows = [self.values[number] for number in possible]
        different = {name: len({row[at] for row in rows}) for at, name in enumerate(self.columns)}
        return all(different[name] >= least for name, least in self.least.items())

    def possible_in(self, cohort: Iterable[Stay], bound: Collection[str] = frozenset()) -> dict[str, frozenset[int]]:
        """The values a cohort leaves everyone who was ever in it; ``bound`` people are in other cohorts too."""
        arcs: dict[str, list[Arc]] = {}
        for stay in cohort:
            end = self.releases if stay.stop is None else stay.stop
            arcs.setdefault(stay.person, []).append((stay.value, stay.start, end))
        return possible_values(arcs, bound)

    def exposed_people(self) -> int:
        """Number of people for whom too few values stay possible; who was in several cohorts needs all of them."""
        cohorts_of = Counter(person for cohort in self.cohorts for person in {stay.person for stay in cohort})
        bound = {person for person, count in cohorts_of.items() if count > 1}
        possible: dict[str, frozenset[int]] = {}
        for cohort in self.cohorts:
            for person, values in self.possible_in(cohort, bound).items():
                possible[person] = possible.get(person, values) & values
        return sum(not self.is_enough(values) for values in possible.values())

    def split_people(self) -> int:
        """Number of people who were shown with several values or twice in one release, which no claim allows."""
        stays_of: dict[str, list[Stay]] = {}
        for cohort in self.cohorts:
            for stay in cohort:
                stays_of.setdefault(stay.person, []).append(stay)
        return sum(len(own) > 1 and _contradict(own) for own in stays_of.values())

    def shown(self, cohort: int, release: int) -> Counter[Carried]:
        """How often a release shows each value in a cohort."""
        return Counter(self.values[stay.value] for stay in self.cohorts[cohort] if stay.is_shown(release))


def _contradict(stays: Sequence[Stay]) -> bool:
    """Whether stays of one person differ in value or overlap."""
    ordered = sorted(stays, key=lambda stay: stay.start)
    overlap = any(one.stop is None or one.stop > other.start for one, other in pairwise(ordered))
    return overlap or len({stay.value for stay in ordered}) > 1


# ---- The claim -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SeriesClaim:
    """That a release keeps its own claim and, with all before it, leaves enough values possible for everyone.

    Parameters
    ----------
    own : what the release claims of itself.
    history : of all releases, this one included.
    cohort_of_row : the cohort of each row of the release; -1 where it is suppressed.
    held_back : how many people are in the table and not in the release, by reason.
    """

    own: Claim
    history: History
    cohort_of_row: IntArray
    held_back: Mapping[str, int]

    def check(self, view: View, table: Table) -> None:
        """Raise unless the rows are those of the history, and the history keeps the claim."""
        self.own.check(view, table)
        history, last = self.history, self.history.releases - 1
        if not np.array_equal(self.cohort_of_row < 0, view.suppressed):
            raise PrivacyViolationError("The release shows other rows than the history of its series.")
        carried = carried_rows(view.passthrough, view.schema, history.columns)
        rows_of: dict[int, list[int]] = {number: [] for number in range(len(history.cohorts))}
        for row in np.flatnonzero(self.cohort_of_row >= 0).tolist():
            rows_of[int(self.cohort_of_row[row])].append(row)
        for number, rows in rows_of.items():
            if Counter(carried[row] for row in rows) != history.shown(number, last):
                raise PrivacyViolationError("A cohort shows other values than the history of its series.")
            if len(set(view.classes.labels[rows].tolist())) > 1:
                raise PrivacyViolationError("A cohort of the series is in several classes of the release.")
        refuse_exposed(history)

    def to_dict(self) -> dict[str, Any]:
        """That of the release itself, and what holds over the series."""
        return {**self.own.to_dict(), "series": self.facts}

    @property
    def facts(self) -> dict[str, Any]:
        """For the manifest: counts and names of columns."""
        last = self.history.releases - 1
        return {
            "releases": self.history.releases,
            "least_values": dict(self.history.least),
            "counterfeit_rows": len(self.history.counterfeits(last)),
            "held_back": dict(self.held_back),
        }

    def describe(self, unit: Unit) -> str:
        """One sentence."""
        own = self.own.describe(unit)
        return own if self.history.releases < 2 else f"{own}; {describe_series(self.facts)}"


def describe_series(facts: Mapping[str, Any]) -> str:
    """What holds over a series, as a clause."""
    kept = " and ".join(f"{least} values of {name!r}" for name, least in facts["least_values"].items())
    return (
        f"together, the {facts['releases']} releases of the series leave at least {kept} possible for every person, "
        "to someone who knows all quasi-identifiers and who is in which release and class"
    )


def refuse_exposed(history: History) -> None:
    """Raise unless a history keeps what its series claims."""
    split = history.split_people()
    if split:
        raise PrivacyViolationError(f"The series shows {split} people twice in one release or with several values.")
    exposed = history.exposed_people()
    if exposed:
        raise PrivacyViolationError(
            f"The releases of the series together leave too few values possible for {exposed} people."
        )


def carried_rows(frame: Any, schema: Schema, columns: Sequence[str]) -> list[Carried]:
    """What every row says in the carried columns, as text; numbers are equal however they are written."""
    cells = []
    for name in columns:
        column, attribute, absent = frame[name], schema[name], missing_mask(frame[name], schema)
        if isinstance(attribute, Numeric):
            shown = [f"{number:.15g}" for number in numbers(column, attribute, absent)]
        else:
            shown = [str(text) for text in texts(column)]
        cells.append([None if gone else text for text, gone in zip(shown, absent, strict=True)])
    return list(zip(*cells, strict=True)) if cells else [()] * len(frame)


def with_release(history: History, cohorts: Iterable[Cohort], values: Iterable[Carried]) -> History:
    """The history after one more release."""
    return replace(history, cohorts=tuple(cohorts), values=tuple(values), releases=history.releases + 1)
