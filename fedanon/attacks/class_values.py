"""Which sensitive values the classes of a release hold, and how often: sparse, as most classes hold few values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray

IndexArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClassValues:
    """The distinct pairs of class and value.

    Parameters
    ----------
    labels, codes : class and value of each pair, in order of class.
    counts : rows with that pair.
    pair_of : the pair of every row; -1 for rows that are in no class.
    classes : number of classes.
    """

    labels: IndexArray
    codes: IndexArray
    counts: IndexArray
    pair_of: IndexArray
    classes: int

    @classmethod
    def of(cls, classes: Groups, codes: NDArray[Any]) -> ClassValues:
        """The values ``codes`` of the rows by their classes."""
        kept = np.flatnonzero(~classes.suppressed)
        pairs = Groups.equal_rows(np.column_stack([classes.labels[kept], codes[kept]]))
        rows = kept[pairs.first_rows]
        pair_of = np.full(len(codes), -1, dtype=np.int64)
        pair_of[kept] = pairs.labels
        return cls(
            classes.labels[rows].astype(np.int64), codes[rows].astype(np.int64), pairs.sizes, pair_of, classes.count
        )

    @cached_property
    def distinct(self) -> IndexArray:
        """Number of different values in each class."""
        return np.bincount(self.labels, minlength=self.classes)

    @cached_property
    def most(self) -> IndexArray:
        """How often the most common value of each class occurs."""
        return self._highest(self.counts)

    @cached_property
    def modal(self) -> NDArray[np.bool_]:
        """Which pairs are of a most common value of their class."""
        return np.asarray(self.counts == self.most[self.labels])

    @cached_property
    def guess_chance(self) -> FloatArray:
        """For each pair, the chance that a most common value of the class, drawn where several are, is this one."""
        return self.modal / self._number(self.modal)[self.labels]

    def guess_chance_without_one(self, domain: int) -> FloatArray:
        r""":attr:`guess_chance` where the attacker knows of one other value that the person does not have it.

        The excluded value is any of the ``domain - 1`` others with equal chance. A value that shares the first place
        with a - 1 others is guessed with chance :math:`\frac{1}{D-1} + (1 - \frac{a-1}{D-1})\frac1a`; one of b in the
        second place behind a single first with :math:`\frac{1}{D-1}\frac1b`.
        """
        first = self._number(self.modal)[self.labels]
        second = ~self.modal & (self.counts == self._highest(np.where(self.modal, 0, self.counts))[self.labels])
        behind = self._number(second)[self.labels]
        chance = 1 / (domain - 1)
        of_first = np.where(first > 1, chance + (1 - (first - 1) * chance) / first, 1.0)
        of_second = np.where(first == 1, chance / np.maximum(behind, 1), 0.0)
        return np.asarray(np.where(self.modal, of_first, np.where(second, of_second, 0.0)))

    def _highest(self, counts: IndexArray) -> IndexArray:
        highest = np.zeros(self.classes, dtype=np.int64)
        np.maximum.at(highest, self.labels, counts)
        return highest

    def _number(self, pairs: NDArray[np.bool_]) -> IndexArray:
        return np.bincount(self.labels[pairs], minlength=self.classes)
