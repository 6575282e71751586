"""How many groups the elbow of DAS finds in every numeric quasi-identifier (tables 6.1 and 6.3)."""

from __future__ import annotations

from dataclasses import dataclass

from fedanon.anonymizers.das import elbow
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import Outcome, Task, whole_table


@TASKS.register("elbow")
@dataclass(frozen=True, kw_only=True)
class ElbowTask(Task):
    """Number of groups by column."""

    def run(self) -> Outcome:
        """One measure a column, `groups age` and the like."""
        columns = whole_table(self.dataset).columns
        return Outcome({f"groups {c.name}": float(elbow(c.values)) for c in columns if c.values is not None})
