"""The task of streams: stream methods and windows of methods for tables."""

from __future__ import annotations

import pytest

from fedanon.errors import ConfigError
from fedanon.harness.tasks.stream import StreamTask


def test_streams_and_windows_are_measured_alike() -> None:
    cells = {
        name: StreamTask(dataset="adult", method=name, k=5, delay=150, rows=450).run().metrics
        for name in ("fads", "prospect", "mondrian")
    }
    assert all(set(cell) == {"ncp", "dropped_share"} for cell in cells.values())
    assert 0 < cells["prospect"]["ncp"] < cells["fads"]["ncp"] < 1
    assert cells["mondrian"]["dropped_share"] == 0.0


def test_a_longer_delay_loses_less() -> None:
    short, long = (
        StreamTask(dataset="adult", method="mondrian", k=5, delay=delay, rows=600).run().metrics["ncp"]
        for delay in (100, 600)
    )
    assert long < short


def test_wrong_settings_are_reported_before_anything_is_run() -> None:
    with pytest.raises(ConfigError, match="too short"):
        StreamTask(dataset="adult", method="prospect", k=10, delay=5)
