"""The next release of a series: people stay in their cohort, newcomers join where all releases together stay safe.

A cohort is a class of the release in which its people were first shown. It is published whole, alone or together with
others, as long as it lasts; see :mod:`fedanon.privacy.series` for why that keeps values open, and
:mod:`fedanon.anonymizers.cohorts` for who joins which. Where a leaver would be exposed by the difference, a counterfeit
row takes their place; it is counted, and shares the cells of the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fedanon.anonymizers.base import Anonymizer, KAnonymizer, ReleasePlan, publish_smallest_cells, refuse_few_people
from fedanon.anonymizers.cohort_boxes import CohortBoxes
from fedanon.anonymizers.cohorts import Placement
from fedanon.anonymizers.enforcement import keep_requirements
from fedanon.data.groups import Groups
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError, InfeasibleError
from fedanon.privacy.combined import Combined
from fedanon.privacy.models.l_diversity import DistinctLDiversity
from fedanon.privacy.series import Carried, Cohort, History, SeriesClaim, Stay, carried_rows, with_release
from fedanon.release.gate import verify
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Release, release_of
from fedanon.types import IndexArray, IntArray, Rng


@dataclass(frozen=True, eq=False)
class SeriesStep:
    """One release of a series.

    Parameters
    ----------
    release : verified, with a claim over all releases so far.
    table : what it was made from, with its counterfeit rows at the end.
    history : of all releases, this one included.
    """

    release: Release
    table: Table
    history: History

    @property
    def claim(self) -> SeriesClaim:
        """What the release claims."""
        assert isinstance(self.release.claim, SeriesClaim)
        return self.release.claim


def start_history(method: Anonymizer, schema: Schema) -> History:
    """An empty history for releases of tables of ``schema`` by ``method``; ConfigError says what they lack."""
    if schema.person_id is None:
        raise ConfigError(
            "A series of releases must know who is who from one table to the next, and the schema names no person_id. "
            "Name the identifying column of people there; without it, nothing is promised over several releases."
        )
    required = method.required if isinstance(method, KAnonymizer) else ()
    least = {model.column: model.l for model in required if isinstance(model, DistinctLDiversity)}
    if not least or not method.truthful:
        raise ConfigError(
            "A series of releases promises a number of sensitive values that stay possible: choose a method that takes "
            "k and publishes true cells, and say --require l=2:COLUMN for a sensitive column."
        )
    quasi = {attribute.name for attribute in schema.quasi_identifiers}
    return History(tuple(name for name in schema.published if name not in quasi), least)


def release_next(
    method: Anonymizer, table: Table, people: Sequence[str], history: History, *, rng: Rng | int
) -> SeriesStep:
    """The release of ``table`` that follows those of ``history``, verified together with them.

    Parameters
    ----------
    method : makes the first release, and cohorts of newcomers; with k and distinct l-diversity required.
    table : of this time, one row per person.
    people : pseudonym of every person, by the person's number in the table.
    history : of the releases before; :func:`start_history` begins one.
    rng : a generator or a seed.
    """
    expected = start_history(method, table.schema)
    if (history.columns, dict(history.least)) != (expected.columns, dict(expected.least)):
        raise ConfigError(
            "The earlier releases of the series carry other columns or promise another number of values: require the "
            "same of this one."
        )
    assert isinstance(method, KAnonymizer)
    generator = np.random.default_rng(rng)
    who = name_rows(table, people)
    if history.releases == 0:
        return _first_step(method, table, who, history, generator)
    return _next_step(method, table, who, history, generator)


def name_rows(table: Table, people: Sequence[str]) -> list[str]:
    """The pseudonym of the person of each row, given that of each person; every person must have one row."""
    assert table.persons is not None
    several = int((np.bincount(table.persons) > 1).sum())
    if several:
        raise DataError(
            f"The table has {several} people with several rows; a series of releases takes one row per person. Keep "
            "one row of each, or widen the table so that a person's rows become columns."
        )
    return [people[number] for number in table.persons]


def _first_step(method: KAnonymizer, table: Table, who: list[str], history: History, rng: Rng) -> SeriesStep:
    release = method.anonymize(table, rng=rng)
    numbers, values = _number_values(table, history)
    cohorts = _found_cohorts(release.classes, who, numbers, 0)
    after = with_release(history, cohorts, values)
    waiting = int(release.suppressed.sum())
    claim = SeriesClaim(method.claim(), after, release.classes.labels, {"waiting": waiting} if waiting else {})
    release = replace(release, claim=claim)
    return SeriesStep(verify(release, table), table, after)


def _next_step(method: KAnonymizer, table: Table, who: list[str], history: History, rng: Rng) -> SeriesStep:
    refuse_few_people(table, method.k)
    numbers, values = _number_values(table, history)
    draft = replace(history, values=values, releases=history.releases + 1)
    placement = Placement(table, who, numbers, draft, method.k)
    placement.place()
    new = _group_newcomers(method, table, placement.waiting, rng)
    founded = _found_cohorts(new, who, numbers, history.releases)
    after = replace(draft, cohorts=(*placement.cohorts, *founded))
    people = len(after.cohort_of_person(history.releases))
    if people < method.k:
        raise InfeasibleError(
            f"Beside the earlier releases only {people} people of the table can be shown, fewer than k={method.k}: "
            "nothing can be published."
        )
    padded, labels = add_counterfeits(table, who, after)
    held_back = {reason: count for reason, count in placement.count_held_back(~new.suppressed).items() if count}
    claim = SeriesClaim(method.claim(), after, labels, held_back)
    plan = _publish(method, padded, labels, _describe_cost(claim))
    release = release_of(
        padded,
        plan.groups,
        plan.cells,
        claim=claim,
        provenance=method.provenance(table, rng, plan),
        recoding=plan.recoding,
    )
    return SeriesStep(verify(release, padded), padded, after)


def _number_values(table: Table, history: History) -> tuple[list[int], tuple[Carried, ...]]:
    """The number of what every row says in the carried columns, and what the numbers mean, the known ones first."""
    known = {value: number for number, value in enumerate(history.values)}
    numbers = [known.setdefault(row, len(known)) for row in carried_rows(table.frame, table.schema, history.columns)]
    return numbers, tuple(known)


def _found_cohorts(groups: Groups, who: Sequence[str], numbers: Sequence[int], release: int) -> list[Cohort]:
    """A cohort for every group of people who were never shown before."""
    members = np.split(groups.order, groups.starts[1:]) if groups.count else []
    return [tuple(Stay(who[row], numbers[row], release) for row in rows) for rows in members]


def _group_newcomers(method: KAnonymizer, table: Table, waiting: IndexArray, rng: Rng) -> Groups:
    """Make classes of the people no cohort takes, if they are enough; all others are in none."""
    labels = np.full(len(table), -1, dtype=np.int32)
    if len(waiting) >= method.k:
        # where they are too much alike, they wait for others
        with suppress(InfeasibleError):
            labels[waiting] = method.anonymize(table.select_rows(waiting), rng=rng).classes.labels
    return Groups.from_labels(labels)


def _publish(method: KAnonymizer, table: Table, labels: IntArray, notes: tuple[str, ...]) -> ReleasePlan:
    """Cohorts short of k people, or of what else is required, share a class with their nearest."""
    groups = Groups.from_labels(merge_short_cohorts(table, labels, method.k))
    own = method.claim()
    assert isinstance(own, Combined)
    cells = publish_smallest_cells(table, groups)
    groups, shown = keep_requirements(table, groups, cells, own, lambda merged: publish_smallest_cells(table, merged))
    return ReleasePlan(groups, shown, NearestGroup(), notes)


def merge_short_cohorts(table: Table, labels: IntArray, k: int) -> IntArray:
    """Labels with every cohort short of k people joined to the one with which it adds least loss, smallest first."""
    people = np.unique(table.persons, return_index=True)[1] if table.persons is not None else np.arange(len(table))
    own: IntArray = np.full(len(table), -1, dtype=np.int32)
    own[people] = labels[people]
    boxes, target = CohortBoxes(table, own, int(labels.max(initial=-1)) + 1), np.arange(int(labels.max(initial=-1)) + 2)
    while len(lasting := boxes.lasting) > 1:
        c = int(lasting[np.argmin(boxes.sizes[lasting])])
        if boxes.sizes[c] >= k:
            break
        others = lasting[lasting != c]
        nearest = int(others[np.argmin(boxes.added_by_merging(c, others))])
        boxes.merge(c, nearest)
        target[target == c] = nearest
    return np.where(labels < 0, -1, target[labels]).astype(np.int32)


def _describe_cost(claim: SeriesClaim) -> tuple[str, ...]:
    facts, notes = claim.facts, []
    if facts["counterfeit_rows"]:
        notes.append(
            f"{facts['counterfeit_rows']} counterfeit rows stand for people who left, whose value the difference to "
            "earlier releases would show."
        )
    if facts["held_back"]:
        reasons = ", ".join(f"{count} ({reason})" for reason, count in facts["held_back"].items())
        notes.append(f"People held back, since earlier releases would expose them or others: {reasons}.")
    return tuple(notes)


def add_counterfeits(table: Table, who: Sequence[str], history: History) -> tuple[Table, IntArray]:
    """The table of the last release of a history with its counterfeit rows at the end, and the cohort of every row.

    A counterfeit row is in all quasi-identifiers like its donor, the first row of the same cohort, and counted as the
    donor's, so that it adds no one to the people of its class.

    Parameters
    ----------
    table : one row per person.
    who : pseudonym of the person of each row.
    history : up to the release of the table.
    """
    last = history.releases - 1
    known, rows = history.cohort_of_person(last), history.counterfeits(last)
    cohort_of_row = np.array([known.get(person, -1) for person in who], dtype=np.int32)
    first = {int(cohort): row for row, cohort in reversed(list(enumerate(cohort_of_row)))}
    if not rows:
        return table, cohort_of_row
    if not {cohort for cohort, _ in rows} <= set(first):
        raise DataError("The table is not the one the ledger knows: some cohorts have no one in it.")
    donors = np.array([first[cohort] for cohort, _ in rows], dtype=np.int64)
    padded = table.select_rows(np.concatenate([np.arange(len(table)), donors]))
    frame = padded.frame.reset_index(drop=True)
    for at, name in enumerate(history.columns):
        shown = _typed(pd.Series([value[at] for _, value in rows], dtype="object"), table.frame[name])
        frame[name] = pd.concat([table.frame[name], shown], ignore_index=True)
    return replace(padded, frame=frame), np.concatenate([cohort_of_row, cohort_of_row[donors]])


def _typed(cells: pd.Series[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    """Texts as the values of a column that says the same."""
    if pd.api.types.is_bool_dtype(like):
        return cells.map({"True": True, "False": False})
    if not pd.api.types.is_numeric_dtype(like):
        return cells
    found = pd.to_numeric(cells)
    return found if found.isna().any() else found.astype(like.dtype)
