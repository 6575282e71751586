"""The task that proves bounds: what the library proves, of one table and of the nodes of a partition."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers.bounds.bound import lower_bound
from fedanon.harness.tasks.bound import BoundTask
from fedanon.testing.examples import example_table


def test_the_bound_of_a_table_and_of_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = example_table(80, numeric_only=True)
    halves = [np.arange(40), np.arange(40, 80)]
    monkeypatch.setattr("fedanon.harness.tasks.release.whole_table", lambda _: table)
    monkeypatch.setattr("fedanon.harness.tasks.release.partition_rows", lambda *_: halves)
    # without any time the bound is that of the nearest records, on every machine
    whole = BoundTask(dataset="adult", k=3, seconds=0.0).run().metrics
    assert whole["bound_il"] == lower_bound(table, 3, seconds=0.0).bound > 0
    parts = [lower_bound(table.select_rows(rows), 3, seconds=0.0).bound for rows in halves]
    nodes = BoundTask(dataset="adult", k=3, partition="iid", nodes=2, seconds=0.0).run().metrics
    assert nodes["bound_il"] == pytest.approx(np.mean(parts))
