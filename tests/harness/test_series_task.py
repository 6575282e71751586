"""Months of releases as a cell of an experiment."""

from __future__ import annotations

from fedanon.harness.tasks.series import SeriesTask


def test_the_same_cell_gives_the_same_numbers_and_a_series_exposes_nobody() -> None:
    task = SeriesTask(dataset="randhie", method="mondrian", k=40, column="poor_health", months=3, churn=0.2)
    first = task.run().metrics
    assert first == task.run().metrics
    assert first["certain_series"] == first["certain_first"] == 0
    assert first["certain_alone"] >= 0
    assert abs(first["ncp_extra"]) < 0.5
    assert 0 <= first["counterfeit_share"] < 0.2
