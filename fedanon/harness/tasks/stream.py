"""The rows of a table as a stream of records: what a stream method loses within a delay, beside windows of a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedanon.data.table import Table
from fedanon.federated.sources import data_of, whole_table
from fedanon.fields import parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, MethodTask
from fedanon.metrics import METRICS
from fedanon.registry import Registry
from fedanon.streams import RECORD_METHODS, replay_records


@TASKS.register("stream")
@dataclass(frozen=True, kw_only=True)
class StreamTask(MethodTask):
    """Mean NCP and share dropped of a stream of records: the first ``rows`` of a permutation by the seed.

    The method is one for streams, or one for tables that gets every ``delay`` rows as a table of their own. Both hold a
    record for at most ``delay`` later ones; a record that is dropped counts 1.
    """

    delay: int = parameter(2000, help="how many later records a record may wait for", at_least=2)
    rows: int = parameter(12_000, help="number of records", at_least=2)

    @classmethod
    def registry(cls, method: str) -> Registry[Any]:
        """Where the method is registered: among those for streams, or those for a table."""
        return RECORD_METHODS if method in RECORD_METHODS else super().registry(method)

    def parameters(self) -> dict[str, Any]:
        """The method's parameters, with the delay where it has one."""
        return super().parameters() | ({"delay": self.delay} if self.method in RECORD_METHODS else {})

    def run(self) -> CellResult:
        """Publish the stream and measure it."""
        whole = whole_table(data_of(self))
        order = np.random.default_rng(self.seed).permutation(len(whole))[: self.rows]
        table = whole.select_rows(order)
        found = self._streamed(table) if self.method in RECORD_METHODS else self._windowed(table)
        return CellResult(dict(zip(("ncp", "dropped_share"), found, strict=True)))

    def _streamed(self, table: Table) -> tuple[float, float]:
        release = replay_records(self.anonymizer(), table, seed=self.seed)  # type: ignore[arg-type]
        return METRICS["ncp"].function(table, release), float(release.suppressed.mean())

    def _windowed(self, table: Table) -> tuple[float, float]:
        sums = np.zeros(2)
        for number, begin in enumerate(range(0, len(table), self.delay)):
            part = table.select_rows(np.arange(begin, min(begin + self.delay, len(table))))
            release = self.anonymizer().anonymize(part, rng=np.random.default_rng([self.seed, number]))
            sums += len(part) * np.array([METRICS["ncp"].function(part, release), release.suppressed.mean()])
        loss, dropped = (sums / len(table)).tolist()
        return loss, dropped
