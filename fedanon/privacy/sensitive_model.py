"""SensitiveModel: base of the models about the values of one column within a class."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.parameters import parameter
from fedanon.privacy.base import CellsOf, Forecast, Judge, Mask, PrivacyModel, Rows
from fedanon.privacy.count_rule import CountRule
from fedanon.privacy.counts import Counter, Counts

#: no forecast is made where it would take more counts than these
MOST_COUNTS = 16_000_000


@dataclass(frozen=True, kw_only=True)
class SensitiveModel(PrivacyModel):
    """A model only implements :meth:`kept`, on the counts of :class:`Counts`."""

    column: str = parameter(help="the sensitive column")

    @abstractmethod
    def kept(self, counts: Counts) -> Mask:
        """Which classes are fine."""

    def count_rule(self, counts: Counts) -> CountRule | None:
        """The model as a rule on the counts of a class, where it is one; ``counts`` are those of all rows."""
        return None

    def judge(self, rows: Rows, published: Mask) -> Judge:
        """Encode and count once; see :class:`PrivacyModel`."""
        counter = Counter(rows, self.column, published)

        def fine(groups: Groups, _: CellsOf) -> Mask:
            parts = [self.kept(counts) for counts in counter.chunks(groups)]
            return np.concatenate([np.empty(0, dtype=bool), *parts])

        def forecast(groups: Groups) -> Forecast:
            if groups.count * counter.values.size > MOST_COUNTS:
                return Forecast()
            return _SensitiveForecast(self, counter.counts(groups))

        return Judge(fine, forecast)


class _SensitiveForecast(Forecast):
    """Adds counts, as if no person were in two classes."""

    def __init__(self, model: SensitiveModel, counts: Counts) -> None:
        self._model, self._counts = model, counts

    def fine(self, source: int, others: NDArray[np.int64]) -> Mask:
        """Judge the sums."""
        return self._model.kept(self._counts.united(source, others))

    def merge(self, source: int, into: int) -> None:
        """Add the counts."""
        self._counts.by_class[into] += self._counts.by_class[source]
        self._counts.people[into] += self._counts.people[source]
