"""Anonymise, then measure loss and risk: of one table, or as a mean over the clients of a partition."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedanon.anonymizers.gfkmc.das import elbow
from fedanon.data.partition import parse_partition
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.fields import parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import WHOLE, MethodTask, Outcome, Task, whole_table
from fedanon.metrics import METRICS, evaluate

#: a measure of the making of a release; unlike the others it differs from run to run
CPU_SECONDS = "cpu_seconds"


@TASKS.register("release")
@dataclass(frozen=True, kw_only=True)
class ReleaseTask(MethodTask):
    """Loss and risk of a method's releases.

    A measure that does not apply to a table, such as IL without numeric columns, is left out.
    """

    partition: str = parameter(WHOLE, help="whole, stored (the set's own parts), iid, dirichlet:ALPHA or by:COLUMN")
    clients: int = parameter(10, help="number of clients of a partition", at_least=1)
    measures: str = parameter(
        "k_reached,ncp,linkage_expected_share", help=f"metrics, and {CPU_SECONDS} to time the releases; with commas"
    )

    require: str = parameter("", help="what classes keep beyond k, such as l=2:income,t=0.3:income")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self._metrics():
            METRICS[name]

    def method_settings(self) -> dict[str, Any]:
        """The method's parameters, k and what is required beyond it among them."""
        return super().method_settings() | ({"require": self.require} if self.require else {})

    def _metrics(self) -> list[str]:
        return [name for name in self.measures.split(",") if name != CPU_SECONDS]

    def run(self) -> Outcome:
        """Plain means over the clients, as the thesis has them."""
        rows: list[dict[str, float]] = []
        notes: list[str] = []
        for number, table in enumerate(self._tables()):
            # the seed of a whole table is the cell's own, so that the number is found again on the command line
            rng = self.seed if self.partition == WHOLE else np.random.default_rng([self.seed, number])
            begun = time.process_time()
            release = self.anonymizer().anonymize(table, rng=rng)
            timed = {CPU_SECONDS: time.process_time() - begun} if CPU_SECONDS in self.measures.split(",") else {}
            rows.append(evaluate(table, release, self._metrics()) | timed)
            notes += release.provenance.notes
        means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        return Outcome({n: v for n, v in means.items() if not math.isnan(v)}, notes=tuple(dict.fromkeys(notes)))

    def _tables(self) -> Iterator[Table]:
        if self.partition == "stored":
            yield from (load(self.dataset, node=number) for number in range(self.clients))
            return
        table = whole_table(self.dataset)
        if self.partition == WHOLE:
            yield table
            return
        wanted = None if self.partition.startswith("by:") else self.clients
        rng = np.random.default_rng([self.seed, *b"partition"])
        yield from (table.select_rows(rows) for rows in parse_partition(self.partition)(table, wanted, rng))


# ---- How many groups the elbow of DAS finds in every numeric quasi-identifier (tables 6 ----------


@TASKS.register("elbow")
@dataclass(frozen=True, kw_only=True)
class ElbowTask(Task):
    """Number of groups by column."""

    def run(self) -> Outcome:
        """One measure a column, `groups age` and the like."""
        columns = whole_table(self.dataset).columns
        return Outcome({f"groups {c.name}": float(elbow(c.values)) for c in columns if c.values is not None})
