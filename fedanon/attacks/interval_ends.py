"""Interval ends: where intervals are as tight as their class allows, each end is the exact value of someone.

Knows: the release alone. Does: takes both ends of every published interval for the value of a person in the class.
Judged by: the share of ends that are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, clustered_interval
from fedanon.attacks.context import AttackContext
from fedanon.data.cells import Intervals
from fedanon.data.groups import Groups
from fedanon.errors import NotApplicableError
from fedanon.types import FloatArray


@ATTACKS.register("interval_ends")
@dataclass(frozen=True, kw_only=True)
class IntervalEnds(Attack):
    r"""Share of the ends of published intervals that are the exact value of someone in the class.

    .. math:: \frac{1}{2I} \sum_{c,j} [\exists i \in c: x_{ij} = a_{cj}] + [\exists i \in c: x_{ij} = b_{cj}]

    over the I intervals :math:`[a_{cj}, b_{cj}]` of the classes c and numeric columns j that are not points.
    Baseline: the chance that a value drawn from those of the column inside the interval is someone's in the class.
    """

    title = "Interval ends"
    meaning = "The ends of an interval are the exact values of people in the class, the extreme ones."
    target = "release"

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Look for the ends of every interval among the values of its class."""
        classes = context.release.classes
        found = list(_look_at_columns(context))
        if not found:
            raise NotApplicableError("The release publishes no interval of numbers.")
        hits = np.sum([column.hits for column in found], axis=0)
        tries = np.sum([2 * column.wide for column in found], axis=0)
        n = int(tries.sum())
        guess = sum(float(column.guess[column.wide].sum()) for column in found)
        records = sum(int(classes.sizes[column.wide].sum()) for column in found)
        at_end = sum(float(column.at_end[column.wide].sum()) for column in found)
        details = {"intervals": n / 2, "values_at_an_end": at_end / records}
        return Finding(float(hits.sum()) / n, 2 * guess / n, clustered_interval(hits, tries), n, details)


@dataclass(frozen=True, eq=False)
class _Ends:
    """One column, per class.

    Parameters
    ----------
    wide : whether the interval is more than a point.
    hits : how many of its two ends are someone's value.
    guess : share of the column's values inside that are someone's.
    at_end : how many records lie at an end.
    """

    wide: NDArray[np.bool_]
    hits: FloatArray
    guess: FloatArray
    at_end: FloatArray


def _look_at_columns(context: AttackContext) -> Iterator[_Ends]:
    classes = context.release.classes
    group = context.release.groups.labels[classes.first_rows]
    for i, column in enumerate(context.table.columns):
        cells = context.release.cells[column.name].select(group)
        if not isinstance(cells, Intervals) or column.values is None or not (cells.low < cells.high).any():
            continue
        wide = cells.low < cells.high
        value = column.values[context.table.codes[:, i]]
        low, high = (_count_at(classes, value, ends) for ends in (cells.low, cells.high))
        hits = np.where(wide, (low > 0).astype(float) + (high > 0), 0.0)
        yield _Ends(wide, hits, _share_taken(classes, value, cells, column.values), low + high)


def _count_at(classes: Groups, value: FloatArray, ends: FloatArray) -> FloatArray:
    """Count the records of each class whose value is the end."""
    shown = ~classes.suppressed
    label = classes.labels[shown]
    return np.asarray(np.bincount(label, weights=value[shown] == ends[label], minlength=classes.count), dtype=float)


def _share_taken(classes: Groups, value: FloatArray, cells: Intervals, values: FloatArray) -> FloatArray:
    """Compute the share of the column's values inside each interval that someone in the class has."""
    shown = ~classes.suppressed
    label = classes.labels[shown]
    inside = (value[shown] >= cells.low[label]) & (value[shown] <= cells.high[label])
    pairs = Groups.equal_rows(np.column_stack([label[inside], value[shown][inside]]))
    have = np.bincount(label[inside][pairs.first_rows], minlength=classes.count)
    known = values[~np.isnan(values)]
    there = np.searchsorted(known, cells.high, side="right") - np.searchsorted(known, cells.low, side="left")
    return np.asarray(have / np.maximum(there, 1))
