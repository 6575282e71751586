"""How many people of every class have each sensitive value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.privacy.base import Mask, Rows
from fedanon.privacy.sensitive import Sensitive, sensitive_values

#: how many counts are held in memory at once
CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Counts:
    """How many people of each class have each value.

    A person with several rows is counted once for each different value in the class, so where persons have several
    rows the counts of a class may add up to more than its people.

    Parameters
    ----------
    by_class : one row a class, one column a value.
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

    def __init__(self, rows: Rows, name: str, published: Mask) -> None:
        self._rows = rows
        self.values = sensitive_values(rows, name)
        everybody = Groups.of(np.where(published, 0, -1))
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
