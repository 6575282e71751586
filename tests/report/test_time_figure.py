"""Loss against time: results that were timed get a figure, others do not."""

from __future__ import annotations

import pandas as pd

from fedanon.harness.tasks.release import ReleaseTask
from fedanon.report.figures import loss_and_time
from fedanon.report.grouping import with_series


def frame(measures: str) -> pd.DataFrame:
    """Two methods at one k, as a result set holds them."""
    rows = []
    for method in ("mondrian", "tdg"):
        task = ReleaseTask(dataset="nhanes", method=method, k=10, metrics=measures)
        place = {
            "grid": "g",
            "task": "release",
            "label": method,
            "method": method,
            "settings": "{}",
            "k": 10,
            "seed": 0,
        }
        rows += [{**place, "measure": name, "value": value} for name, value in task.run().metrics.items()]
    return with_series(pd.DataFrame(rows).astype({"k": "Int64"}))


def test_timed_releases_are_drawn() -> None:
    timed = frame("ncp,cpu_seconds")
    figure = loss_and_time("g", timed, {"mondrian": 0, "tdg": 1})
    assert figure is not None
    (panel,) = figure.panels
    assert panel.title == "k = 10"
    at = timed.pivot_table(index="label", columns="measure", values="value")
    drawn = {one.label: (one.x[0], one.y[0]) for one in panel.series}
    assert drawn == {name: (row["cpu_seconds"], row["ncp"]) for name, row in at.iterrows()}
    assert (at["cpu_seconds"] > 0).all()


def test_without_times_there_is_no_figure() -> None:
    assert loss_and_time("g", frame("ncp"), {"mondrian": 0, "tdg": 1}) is None
