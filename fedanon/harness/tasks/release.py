"""Anonymize, then measure loss and risk: of one table, or as a mean over the nodes of a partition."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedanon.anonymizers.gfkmc.das import elbow
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.federated.sources import STORED, data_of, partition_rows, whole_table
from fedanon.fields import parameter, same_field
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import WHOLE, CellResult, MethodTask, Task
from fedanon.learning.settings import RunSettings
from fedanon.metrics import METRICS, evaluate

#: a metric of the making of a release; unlike the others it differs from run to run
CPU_SECONDS = "cpu_seconds"


@TASKS.register("release")
@dataclass(frozen=True, kw_only=True)
class ReleaseTask(MethodTask):
    """Loss and risk of a method's releases.

    A metric that does not apply to a table, such as IL without numeric columns, is left out.
    """

    partition: str = same_field(
        RunSettings,
        "partition",
        default=WHOLE,
        help="whole, stored (the set's own parts), iid, dirichlet:ALPHA or by:COLUMN",
    )
    nodes: int = same_field(RunSettings, "nodes", help="number of nodes of a partition")
    metrics: str = parameter(
        "k_reached,ncp,linkage_expected_share",
        help=f"metrics, and {CPU_SECONDS} to time the releases; with commas",
        aliases=("measures",),
        joined=True,
    )
    require: str = parameter("", help="what classes keep beyond k, such as l=2:income,t=0.3:income")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self._metrics():
            METRICS[name]

    def parameters(self) -> dict[str, Any]:
        """The method's parameters, k and what is required beyond it among them."""
        return super().parameters() | ({"require": self.require} if self.require else {})

    def _metrics(self) -> list[str]:
        return [name for name in self.metrics.split(",") if name != CPU_SECONDS]

    def run(self) -> CellResult:
        """Plain means over the nodes, as in the thesis."""
        rows: list[dict[str, float]] = []
        notes: list[str] = []
        for number, table in enumerate(tables_of(self)):
            # the seed of a whole table is the cell's own, so that the number is found again on the command line
            rng = self.seed if self.partition == WHOLE else np.random.default_rng([self.seed, number])
            begun = time.process_time()
            release = self.anonymizer().anonymize(table, rng=rng)
            timed = {CPU_SECONDS: time.process_time() - begun} if CPU_SECONDS in self.metrics.split(",") else {}
            rows.append(evaluate(table, release, self._metrics()) | timed)
            notes += release.provenance.notes
        means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        return CellResult({n: v for n, v in means.items() if not math.isnan(v)}, notes=tuple(dict.fromkeys(notes)))


def tables_of(task: Any) -> Iterator[Table]:
    """The table of a task, or those of the nodes of its partition."""
    data = data_of(task)
    if task.partition == STORED and isinstance(data, str):
        yield from (load(data, node=number) for number in range(task.nodes))
        return
    table = whole_table(data)
    if task.partition == WHOLE:
        yield table
        return
    yield from map(table.select_rows, partition_rows(data, task.partition, task.nodes, task.seed))


@TASKS.register("elbow")
@dataclass(frozen=True, kw_only=True)
class ElbowTask(Task):
    """How many groups the elbow of DAS finds in every numeric quasi-identifier (table 6)."""

    def run(self) -> CellResult:
        """One metric per column, `groups age` and the like."""
        columns = whole_table(data_of(self)).columns
        return CellResult({f"groups {c.name}": float(elbow(c.values)) for c in columns if c.values is not None})
