"""A node as the thesis's code had it: the whole table anonymized, then split, every node with its own label codes.

For reproduction only. Test rows are anonymized too, and a number means another category at every node, so the scores
say little about anonymization.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.table import Table
from fedanon.learning.node import Node
from fedanon.models.base import TrainingData
from fedanon.models.target import target
from fedanon.models.thesis_encoding import label_codes
from fedanon.types import TargetArray

TEST_SHARE = 0.3
SPLIT_SEED = 42


@dataclass(frozen=True, eq=False)
class FixedRows:
    """Features that never change."""

    rows: NDArray[Any]
    target: TargetArray
    n_instances: int = 1

    def instance(self, round_number: int) -> int:
        """There is one."""
        return 0

    def features(self, round_number: int) -> NDArray[Any]:
        """The rows."""
        return self.rows


class PublishedNode(Node):
    """Protocol `as_published` (appendix B of the specification of the thesis's runs)."""

    @property
    def width(self) -> int:
        """One feature per quasi-identifier."""
        return len(self._table.columns)

    @cached_property
    def _split(self) -> tuple[Table, Table]:
        # the first part is what a node anonymizes: here, everything
        return self._table, self._table.select_rows(self._rows[1])

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Training and test rows, as scikit-learn's `train_test_split` divides them with the thesis's seed."""
        rows = len(self._table)
        order, n_test = np.random.RandomState(SPLIT_SEED).permutation(rows), math.ceil(TEST_SHARE * rows)
        return order[n_test:], order[:n_test]

    @cached_property
    def _codes(self) -> tuple[NDArray[np.float64], TargetArray]:
        return label_codes(self.release), target(self.release, self.release.schema)

    @cached_property
    def data(self) -> TrainingData:
        """Label codes of the training rows."""
        features, truth = self._codes
        return FixedRows(features[self._rows[0]], truth[self._rows[0]])

    @cached_property
    def test(self) -> tuple[NDArray[Any], TargetArray]:
        """Label codes of the test rows, anonymized like the others."""
        features, truth = self._codes
        return features[self._rows[1]], truth[self._rows[1]]

    @cached_property
    def recoded_test(self) -> NDArray[Any]:
        """The same rows: they are anonymized already."""
        return self.test[0]
