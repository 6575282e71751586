"""Attacks on what a stream has published: intersection over time, timing, and homogeneity in a window.

They run on an :class:`~fedanon.attacks.context.AttackContext` whose release is a
:class:`~fedanon.streams.release.StreamRelease`, and have a registry of their own: an ordinary release has no moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.spans import cell_bounds, points
from fedanon.data.table import Table
from fedanon.errors import ConfigError, NotApplicableError
from fedanon.fields import parameter
from fedanon.registry import Registry
from fedanon.streams.release import StreamRelease
from fedanon.types import BoolArray, FloatArray, IndexArray, Rng

STREAM_ATTACKS: Registry[type[Attack]] = Registry("stream attack")


@STREAM_ATTACKS.register("intersection")
@dataclass(frozen=True, kw_only=True)
class StreamIntersection(Attack):
    r"""Chance to name a person by all boxes they were published under, for someone who can link their readings.

    .. math:: \frac1n \sum_i 1 \Big/ \Big| \bigcap_b P_b \Big|

    with :math:`P_b` the people of the stream whose quasi-identifiers lie in box b of person i. Linking is granted: by a
    pseudonym within an epoch, by the values across epochs and classes. Baseline: the first box of the person alone.
    """

    title = "Intersection over time"
    meaning = "The boxes of all readings of a person together point to that person."
    target = "release"

    def run(self, context: AttackContext, rng: Rng) -> Finding:
        """Intersect the boxes of everybody."""
        release, persons = _release(context), _persons(context)
        inside = _people_in_boxes(context.table, release)
        chances, first = list[float](), list[float]()
        order = np.argsort(release.moments, kind="stable")
        order = order[release.moments[order] >= 0]
        rows = pd.Series(release.groups.labels[order]).groupby(persons[order], sort=True)
        for _, boxes in rows:
            path = boxes.unique()
            chances.append(1 / max(int(inside[path].all(axis=0).sum()), 1))
            first.append(1 / max(int(inside[path[0]].sum()), 1))
        if not chances:
            raise NotApplicableError("The stream publishes nothing.")
        several = float(np.mean([chance > begun for chance, begun in zip(chances, first, strict=True)]))
        details = {"narrowed": several, "alone": float(np.mean(np.array(chances) == 1.0))}
        return Finding.from_tries(np.array(chances), float(np.mean(first)), details=details)


@STREAM_ATTACKS.register("timing")
@dataclass(frozen=True, kw_only=True)
class StreamTiming(Attack):
    """Share of (person, epoch) whose pseudonym is named by someone who knows when they came and left.

    The attacker knows the quasi-identifiers and the times of the first and the last reading in the epoch, looks at the
    pseudonyms whose box holds the person, and names the one whose first and last published times are nearest; among
    equals by chance. Baseline: any of these pseudonyms.
    """

    title = "Timing"
    meaning = "The pseudonym of a person is found by when its readings begin and end."
    target = "release"

    time: str = parameter(help="numeric column with the time of a reading")

    def run(self, context: AttackContext, rng: Rng) -> Finding:
        """Match first and last times."""
        release, persons = _release(context), _persons(context)
        if release.pseudonyms is None:
            raise NotApplicableError("The stream has no pseudonyms.")
        if self.time not in context.table.frame or not isinstance(context.table.schema[self.time], Numeric):
            raise ConfigError(f"The time column {self.time!r} must be numeric and published.")
        shown = np.flatnonzero(release.moments >= 0)
        frame = pd.DataFrame(
            {
                "alias": release.pseudonyms[shown],
                "epoch": release.epochs[shown],
                "person": persons[shown],
                "box": release.groups.labels[shown],
                "shown": pd.to_numeric(release.passthrough[self.time]).to_numpy(dtype=np.float64)[shown],
                "true": pd.to_numeric(context.table.frame[self.time]).to_numpy(dtype=np.float64)[shown],
            }
        )
        series = frame.groupby(["epoch", "alias"], sort=True).agg(
            person=("person", "first"), box=("box", "first"), begun=("shown", "min"), ended=("shown", "max"),
            came=("true", "min"), left=("true", "max"),
        )  # fmt: skip
        inside = _people_in_boxes(context.table, release)
        hits, guesses, who = list[float](), list[float](), list[int]()
        for _, epoch in series.groupby(level="epoch"):
            begun, ended, boxes = epoch["begun"].to_numpy(), epoch["ended"].to_numpy(), epoch["box"].to_numpy()
            for place, (person, came, left) in enumerate(
                zip(epoch["person"], epoch["came"], epoch["left"], strict=True)
            ):
                fits = np.flatnonzero(inside[boxes, person])
                away = np.abs(begun[fits] - came) + np.abs(ended[fits] - left)
                nearest = fits[away <= away.min() + 1e-9]
                hits.append(float(place in nearest) / len(nearest))
                guesses.append(1 / len(fits))
                who.append(int(person))
        return Finding.from_tries(np.array(hits), float(np.mean(guesses)), clusters=np.array(who))


@STREAM_ATTACKS.register("window_homogeneity")
@dataclass(frozen=True, kw_only=True)
class WindowHomogeneity(Attack):
    """Share of the readings whose class, within a window of publications, shows one sensitive value.

    Whoever knows that a person was published in the window knows the value. Baseline: the values of the window dealt
    out anew at random among the same classes.
    """

    title = "Homogeneity in a window"
    meaning = "A sensitive value is certain for everyone of a class in a stretch of time."
    target = "release"

    column: str = parameter("", help="sensitive column; the schema's first by default")
    windows: int = parameter(20, help="into how many windows the publications are cut", at_least=1)

    def run(self, context: AttackContext, rng: Rng) -> Finding:
        """Count readings in classes with one value, window by window."""
        release = _release(context)
        column = self.column or next(iter(release.schema.sensitive), "")
        if not column:
            raise NotApplicableError("The schema has no sensitive column.")
        rows = np.flatnonzero(release.moments >= 0)
        if not len(rows):
            raise NotApplicableError("The stream publishes nothing.")
        codes = pd.factorize(release.passthrough[column].iloc[rows])[0].astype(np.int64)
        ranks = np.argsort(np.argsort(release.moments[rows], kind="stable"), kind="stable")
        window = ranks * self.windows // len(rows)
        cells = Groups.equal_rows(np.column_stack([window, release.classes.labels[rows]]))
        certain = (cells.distinct(codes) == 1)[cells.labels]
        dealt = codes.copy()
        for number in range(self.windows):
            inside = np.flatnonzero(window == number)
            dealt[inside] = rng.permutation(codes[inside])
        baseline = float((cells.distinct(dealt) == 1)[cells.labels].mean())
        details = {"single_readings": float((cells.sizes == 1)[cells.labels].mean())}
        return Finding.from_tries(certain.astype(np.float64), baseline, clusters=cells.labels, details=details)


def _release(context: AttackContext) -> StreamRelease:
    if not isinstance(context.release, StreamRelease):
        raise NotApplicableError("The release is not that of a stream.")
    return context.release


def _persons(context: AttackContext) -> IndexArray:
    return context.table.person_of_row.astype(np.int64)


def _people_in_boxes(table: Table, release: StreamRelease) -> BoolArray:
    """Which people of the table, by the quasi-identifiers of their first row, lie in which box."""
    people = Groups.from_labels(table.person_of_row)
    where: FloatArray = points(table)[people.first_rows]
    inside = np.ones((release.groups.count, people.count), dtype=bool)
    for i, column in enumerate(table.columns):
        low, high = cell_bounds(release.cells[column.name], column.attribute)
        inside &= (low[:, None] <= where[:, i]) & (where[:, i] <= high[:, None])
    return inside
