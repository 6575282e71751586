"""Mask chosen numeric columns of a whole table, then compute loss and risk, or statistics of every column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedanon.data.key_choice import complete_rows, sample_of, with_quasi_identifiers
from fedanon.data.table import Table
from fedanon.errors import DataError
from fedanon.federated.sources import data_of, whole_table
from fedanon.fields import parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, MethodTask
from fedanon.metrics import METRICS, evaluate
from fedanon.release.release import Release
from fedanon.sdc.masking import Masking
from fedanon.sdc.metrics.moments import gini
from fedanon.sdc.metrics.numeric_pair import correlation, numeric_pair
from fedanon.types import FloatArray

#: risk, then loss: the metrics of Morais 2022, tables 28 and 34, plus record linkage, regression and Gini
TABLE_28 = (
    "dld",
    "interval_risk",
    "interval_risk_records",
    "il2",
    "il1",
    "eigenvalues_correlation",
    "mse",
    "mse_covariance",
    "mse_correlation",
    "mae",
    "mae_covariance",
    "mae_correlation",
    "mean_variation_correlation",
    "regression_difference",
    "gini_difference",
)


@dataclass(frozen=True, kw_only=True)
class ColumnsTask(MethodTask):
    """A task about a method that masks chosen columns, optionally followed by reverse mapping."""

    quasi: str = parameter("", help="columns that are masked and evaluated; the data set's quasi-identifiers if empty")
    complete: bool = parameter(False, help="skip the rows that lack one of these columns")
    rows: int = parameter(0, help="rows drawn at random, the same in every run; 0 takes all", at_least=0)
    reverse_map: bool = parameter(False, help="publish the original values in the order of the result")

    def table(self) -> Table:
        """Return the table that is masked."""
        table = whole_table(data_of(self))
        if self.quasi:
            table = with_quasi_identifiers(table, [name.strip() for name in self.quasi.split(",")])
        table = complete_rows(table) if self.complete else table
        return sample_of(table, self.rows) if self.rows else table

    def release(self, table: Table) -> Release:
        """Mask the table; the seed is the cell's own, so that the command line can reproduce the release."""
        return Masking(self.method, self.parameters(), self.reverse_map).release(table, self.seed)


@TASKS.register("masking")
@dataclass(frozen=True, kw_only=True)
class MaskingTask(ColumnsTask):
    """Loss and risk of masked columns; a metric that does not apply is omitted."""

    metrics: str = parameter(
        ",".join(TABLE_28), help="metrics, separated by commas", aliases=("measures",), joined=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.metrics.split(","):
            METRICS[name]

    def run(self) -> CellResult:
        """Compute the metrics of one release."""
        table = self.table()
        release = self.release(table)
        measured = evaluate(table, release, self.metrics.split(","))
        kept = {name: value for name, value in measured.items() if not math.isnan(value)}
        return CellResult(kept, notes=release.provenance.notes)


# ---- statistics of every masked column -----------------------------------------------------------

#: between the name of a statistic and that of its column, in the name of a result
OF = " of "
#: the statistics of Morais 2022, tables 29 to 33, 42 (as a standard deviation), 43 and 44
STATISTICS = ("minimum", "quartile 1", "median", "mean", "quartile 3", "maximum", "sd", "Gini", "correlation")


def column_statistics(original: FloatArray, published: FloatArray) -> dict[str, float]:
    """Return the statistics of one column: Gini in percent, NaN for negative values; correlation with the original."""
    low, first, middle, third, high = (float(q) for q in np.quantile(published, [0, 0.25, 0.5, 0.75, 1]))
    alike = float(correlation(np.column_stack([original, published]))[0, 1])
    spread = float(published.std(ddof=1))
    values = (low, first, middle, float(published.mean()), third, high, spread, gini(published), alike)
    return dict(zip(STATISTICS, values, strict=True))


@TASKS.register("statistics")
@dataclass(frozen=True, kw_only=True)
class StatisticsTask(ColumnsTask):
    """Statistics by column, such as ``mean of income``."""

    def run(self) -> CellResult:
        """Compute all statistics of all numeric columns; those that do not exist are omitted."""
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
        return CellResult({name: value for name, value in found.items() if not math.isnan(value)})
