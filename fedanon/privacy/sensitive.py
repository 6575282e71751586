"""Models about a sensitive column: its values as numbers, how many people of a class have each, and the base class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.schema import Attribute, Categorical, Numeric, Role, Schema
from fedanon.data.table import missing_mask, numbers, texts
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.privacy.base import CellsOf, Evaluator, Forecast, PrivacyModel, Rows
from fedanon.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sensitive:
    """The values of a sensitive column.

    Parameters
    ----------
    attribute : its declaration.
    codes : number of the value of every row; numbers in their order, texts in alphabetical order.
    values : the value of every code, missing ones left out: if any row has none, the last code means missing.
    size : number of codes.
    """

    attribute: Attribute
    codes: IntArray
    values: pd.Index[Any]
    size: int

    @property
    def has_missing(self) -> bool:
        """Whether the last code means missing."""
        return self.size > len(self.values)


def sensitive_values(rows: Rows, name: str) -> Sensitive:
    """Encode a column; every distinct value is one of its own, and so is a missing one."""
    attribute = sensitive_attribute(rows.schema, name)
    column = rows.frame[name]
    absent = missing_mask(column, rows.schema)
    if isinstance(attribute, Numeric):
        column = pd.Series(numbers(column, attribute, absent))
    else:
        column = _told_apart(texts(column).where(~absent), attribute)
    codes, values = pd.factorize(column, sort=True)
    codes[codes < 0] = len(values)
    return Sensitive(attribute, codes.astype(np.int32), pd.Index(values), len(values) + bool(absent.any()))


def _told_apart(column: pd.Series[Any], attribute: Attribute) -> pd.Series[Any]:
    """The values, or what they are at the level at which their rule tells them apart."""
    rule = attribute.rule if isinstance(attribute, Categorical) else None
    if rule is None:
        return column
    label = {value: rule.at_level(str(value), rule.distinct_at) for value in column.dropna().unique()}
    # what is published at a coarser level already stays as it is
    return column.map({value: value if found is None else found for value, found in label.items()})


def sensitive_attribute(schema: Schema, name: str) -> Attribute:
    """The declaration of a column a model is about: any that is published as it is."""
    if name not in schema.names:
        raise ConfigError(f"The requirement names the column {name!r}, which the schema does not declare.")
    attribute = schema[name]
    if attribute.role in (Role.IDENTIFYING, Role.QUASI_IDENTIFYING):
        raise ConfigError(f"The requirement is about the column {name!r}, whose role is {attribute.role}.")
    return attribute


# ---- How many people of every class have each sensitive value ------------------------------------

#: how many counts are held in memory at once
CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Counts:
    """How many people of each class have each value.

    A person with several rows is counted once for each different value in the class, so where persons have several
    rows the counts of a class may add up to more than its people.

    Parameters
    ----------
    by_class : one row per class, one column per value.
    people : number of people in each class.
    whole : number of people with each value in all that is published.
    everyone : number of people published.
    values : the values.
    """

    by_class: NDArray[np.int64]
    people: NDArray[np.int64]
    whole: NDArray[np.int64]
    everyone: int
    values: Sensitive

    def united(self, source: int, others: NDArray[np.int64]) -> Counts:
        """Counts of a class together with each of others, as if no person were in both."""
        by_class = self.by_class[others] + self.by_class[source]
        return replace(self, by_class=by_class, people=self.people[others] + self.people[source])

    @cached_property
    def shares(self) -> FloatArray:
        """Share of the people of a class who have each value: what an attacker may believe of one of them."""
        return np.asarray(self.by_class / self.people[:, None])

    @cached_property
    def whole_shares(self) -> FloatArray:
        """Share of all people who have each value."""
        return np.asarray(self.whole / self.everyone)

    @cached_property
    def distributions(self) -> FloatArray:
        """Counts of a class over their sum."""
        return np.asarray(self.by_class / self.by_class.sum(axis=1, keepdims=True))

    @cached_property
    def whole_distribution(self) -> FloatArray:
        """Counts of all over their sum."""
        return np.asarray(self.whole / self.whole.sum())


class Counter:
    """Counts the values of one column, for any classes of the published rows."""

    def __init__(self, rows: Rows, name: str, published: BoolArray) -> None:
        self._rows = rows
        self.values = sensitive_values(rows, name)
        everybody = Groups.from_labels(np.where(published, 0, -1))
        self._whole = self._table(everybody, 0, 1)[0] if everybody.count else np.zeros(self.values.size, dtype=np.int64)
        self._everyone = int(rows.people(everybody).sum())

    def chunks(self, groups: Groups) -> Iterator[Counts]:
        """Counts of the classes in order, a bounded number of them at a time."""
        step = max(1, CHUNK // max(self.values.size, 1))
        people = self._rows.people(groups)
        for start in range(0, groups.count, step):
            stop = min(start + step, groups.count)
            by_class = self._table(groups, start, stop)
            yield Counts(by_class, people[start:stop], self._whole, self._everyone, self.values)

    def counts(self, groups: Groups) -> Counts:
        """Counts of all classes at once."""
        by_class = self._table(groups, 0, groups.count)
        return Counts(by_class, self._rows.people(groups).copy(), self._whole, self._everyone, self.values)

    def _table(self, groups: Groups, start: int, stop: int) -> NDArray[np.int64]:
        at = groups.order[_begin(groups, start) : _begin(groups, stop)]
        label, code = groups.labels[at].astype(np.int64), self.values.codes[at]
        if self._rows.persons is not None:
            once = Groups.equal_rows(np.column_stack([label, code, self._rows.persons[at]])).first_rows
            label, code = label[once], code[once]
        size = self.values.size
        return np.bincount((label - start) * size + code, minlength=(stop - start) * size).reshape(-1, size)


def _begin(groups: Groups, group: int) -> int:
    return int(groups.starts[group]) if group < groups.count else len(groups.order)


# ---- CountRule -----------------------------------------------------------------------------------

Kind = Literal["distinct", "entropy", "equal", "ordered", "shares"]
KINDS: tuple[Kind, ...] = ("distinct", "entropy", "equal", "ordered", "shares")


class CountRule(NamedTuple):
    """What the counts of the values in a class must keep.

    Parameters
    ----------
    kind : number of different values, their entropy, or their distance to the whole at most or at least ``limit``;
        or the share of every value between ``low`` and ``high``.
    limit : see ``kind``.
    whole : distribution of all values, in the rule's order.
    low, high : bounds of the shares, for that kind.
    order : codes of the values in the rule's order; values it leaves out do not occur.
    """

    kind: Kind
    limit: float
    whole: FloatArray
    low: FloatArray
    high: FloatArray
    order: NDArray[np.int64]


def count_rule(
    kind: Kind,
    whole: FloatArray,
    *,
    limit: float = 0.0,
    low: FloatArray | None = None,
    high: FloatArray | None = None,
    order: NDArray[np.int64] | None = None,
) -> CountRule:
    """A rule over values with the distribution ``whole``; what is not given does not bound."""
    order = np.arange(len(whole)) if order is None else order
    low = np.zeros(len(whole)) if low is None else low
    high = np.ones(len(whole)) if high is None else high
    return CountRule(kind, limit, whole[order], low[order], high[order], order)


# ---- SensitiveModel ------------------------------------------------------------------------------

#: no forecast is made where it would take more counts than these
MOST_COUNTS = 16_000_000


@dataclass(frozen=True, kw_only=True)
class SensitiveModel(PrivacyModel):
    """A model only implements :meth:`kept`, on the counts of :class:`Counts`."""

    subject = "column"

    column: str = parameter(help="the sensitive column")

    @abstractmethod
    def kept(self, counts: Counts) -> BoolArray:
        """Which classes satisfy it."""

    def count_rule(self, counts: Counts) -> CountRule | None:
        """The model as a rule on the counts of a class, where it is one; ``counts`` are those of all rows."""
        return None

    def evaluator(self, rows: Rows, published: BoolArray) -> Evaluator:
        """Encode and count once; see :class:`PrivacyModel`."""
        counter = Counter(rows, self.column, published)

        def satisfied(groups: Groups, _: CellsOf) -> BoolArray:
            parts = [self.kept(counts) for counts in counter.chunks(groups)]
            return np.concatenate([np.empty(0, dtype=bool), *parts])

        def forecast(groups: Groups) -> Forecast:
            if groups.count * counter.values.size > MOST_COUNTS:
                return Forecast()
            return _SensitiveForecast(self, counter.counts(groups))

        return Evaluator(satisfied, forecast)


class _SensitiveForecast(Forecast):
    """Adds counts, as if no person were in two classes."""

    def __init__(self, model: SensitiveModel, counts: Counts) -> None:
        self._model, self._counts = model, counts

    def satisfied(self, source: int, others: NDArray[np.int64]) -> BoolArray:
        """Evaluate the sums."""
        return self._model.kept(self._counts.united(source, others))

    def merge(self, source: int, into: int) -> None:
        """Add the counts."""
        self._counts.by_class[into] += self._counts.by_class[source]
        self._counts.people[into] += self._counts.people[source]
