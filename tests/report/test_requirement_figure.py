"""Loss across requirements: one figure where several were asked, none otherwise."""

from __future__ import annotations

import pandas as pd
import pytest

from fedanon.harness.tasks.release import ReleaseTask
from fedanon.report.figures import loss_and_requirement
from fedanon.report.grouping import with_series


def frame(*requirements: str) -> pd.DataFrame:
    """One method at one k, as a result set holds it."""
    rows = []
    for require in requirements:
        task = ReleaseTask(dataset="nhanes", method="mondrian", k=10, metrics="ncp", require=require)
        place = {"grid": "g", "task": "release", "label": "m", "method": "mondrian", "settings": "{}", "k": 10}
        numbers = task.run().metrics.items()
        rows += [{**place, "require": require, "seed": 0, "measure": name, "value": value} for name, value in numbers]
    return with_series(pd.DataFrame(rows).astype({"k": "Int64"}))


def test_requirements_stand_in_the_order_of_the_file() -> None:
    numbers = frame("", "l=5:general_health")
    figure = loss_and_requirement("g", numbers, {"m": 0})
    assert figure is not None
    (panel,) = figure.panels
    assert [text for _, text in panel.x_ticks] == ["k alone", "l=5"]
    (line,) = panel.series
    assert line.y == pytest.approx(tuple(numbers["value"]))
    assert line.y[1] > line.y[0]  # what is required costs something


def test_one_requirement_is_no_figure() -> None:
    assert loss_and_requirement("g", frame("l=5:general_health"), {"m": 0}) is None
