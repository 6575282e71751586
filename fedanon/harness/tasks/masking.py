"""Mask chosen numeric columns of a whole table, then measure loss and risk."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedanon.data.key_choice import complete_rows, sample_of, with_quasi_identifiers
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.harness.masking import Masking
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import MethodTask, Outcome, whole_table
from fedanon.metrics import METRICS, evaluate
from fedanon.parameters import parameter

#: risk, then loss: those of Morais 2022, tables 28 and 34, and record linkage, regression and Gini beside them
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
    """A task about a method that masks chosen columns, perhaps with reverse mapping after it."""

    quasi: str = parameter("", help="columns that are masked and measured; the data set's quasi-identifiers if empty")
    complete: bool = parameter(False, help="leave out the rows that lack one of these columns")
    rows: int = parameter(0, help="rows drawn at random, always the same; 0 takes all", at_least=0)
    reverse_map: bool = parameter(False, help="publish the original values in the order of the result")

    def table(self) -> Table:
        """What is masked."""
        table = whole_table(self.dataset)
        if self.quasi:
            table = with_quasi_identifiers(table, [name.strip() for name in self.quasi.split(",")])
        table = complete_rows(table) if self.complete else table
        return sample_of(table, self.rows) if self.rows else table

    def release(self, table: Table) -> Release:
        """The masked table; the seed is the cell's own, so that it is found again on the command line."""
        return Masking(self.method, self.method_settings(), self.reverse_map).release(table, self.seed)


@TASKS.register("masking")
@dataclass(frozen=True, kw_only=True)
class MaskingTask(ColumnsTask):
    """Loss and risk of masked columns; a measure that does not apply is left out."""

    measures: str = parameter(",".join(TABLE_28), help="metrics, separated by commas")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.measures.split(","):
            METRICS[name]

    def run(self) -> Outcome:
        """The measures of one release."""
        table = self.table()
        release = self.release(table)
        measured = evaluate(table, release, self.measures.split(","))
        kept = {name: value for name, value in measured.items() if not math.isnan(value)}
        return Outcome(kept, notes=release.provenance.notes)
