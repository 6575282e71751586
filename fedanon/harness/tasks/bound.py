"""Prove how little any partition of a table can lose at k."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers.bounds.bound import lower_bound
from fedanon.fields import parameter, same_field
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, Task
from fedanon.harness.tasks.release import ReleaseTask, tables_of


@TASKS.register("bound")
@dataclass(frozen=True, kw_only=True)
class BoundTask(Task):
    """The bound of one table, or the mean of the bounds of the nodes of a partition."""

    partition: str = same_field(ReleaseTask, "partition")
    nodes: int = same_field(ReleaseTask, "nodes")
    k: int = parameter(5, help="minimum number of records in a class", at_least=1)
    seconds: float = parameter(60.0, help="wall time per table; the bound holds whenever it is stopped", at_least=0)

    def run(self) -> CellResult:
        """`bound_il` of numeric tables, `bound_ncp` of others; and the CPU seconds it took."""
        begun = time.process_time()
        proved = [lower_bound(table, self.k, seconds=self.seconds) for table in tables_of(self)]
        name = "bound_il" if proved[0].objective == "sse" else "bound_ncp"
        mean = float(np.mean([one.bound for one in proved]))
        return CellResult({name: mean, "cpu_seconds": time.process_time() - begun})
