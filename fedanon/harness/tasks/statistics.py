"""What is left of every masked column: its main statistics, its inequality, and its correlation with the original."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedanon.data.hierarchy import FloatArray
from fedanon.errors import DataError
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import Outcome
from fedanon.harness.tasks.masking import ColumnsTask
from fedanon.metrics.sdc.gini import gini
from fedanon.metrics.sdc.numeric_pair import correlation, numeric_pair

#: between the name of a statistic and that of its column, in the name of a measure
OF = " of "
#: those of Morais 2022, tables 29 to 33, 42 (as a standard deviation), 43 and 44
STATISTICS = ("minimum", "quartile 1", "median", "mean", "quartile 3", "maximum", "sd", "Gini", "correlation")


def column_statistics(original: FloatArray, published: FloatArray) -> dict[str, float]:
    """The statistics of one column; Gini in per cent, NaN for negative values, correlation with the original."""
    low, first, middle, third, high = (float(q) for q in np.quantile(published, [0, 0.25, 0.5, 0.75, 1]))
    alike = float(correlation(np.column_stack([original, published]))[0, 1])
    spread = float(published.std(ddof=1))
    values = (low, first, middle, float(published.mean()), third, high, spread, gini(published), alike)
    return dict(zip(STATISTICS, values, strict=True))


@TASKS.register("statistics")
@dataclass(frozen=True, kw_only=True)
class StatisticsTask(ColumnsTask):
    """Statistics by column, such as ``mean of income``."""

    def run(self) -> Outcome:
        """All statistics of all numeric columns; those that do not exist are left out."""
        table = self.table()
        pair = numeric_pair(table, self.release(table))
        if pair is None:
            raise DataError("The release has no two complete rows of numbers.")
        names = [column.name for column in table.columns if column.values is not None]
        found = {
            f"{statistic}{OF}{name}": value
            for name, before, after in zip(names, pair.original.T, pair.published.T, strict=True)
            for statistic, value in column_statistics(before, after).items()
        }
        return Outcome({name: value for name, value in found.items() if not math.isnan(value)})
