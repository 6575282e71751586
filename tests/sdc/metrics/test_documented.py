"""The page of measures and the registry name the same metrics."""

from __future__ import annotations

import re
from pathlib import Path

from fedanon.metrics import METRICS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sdc_metrics.md"


def test_every_measure_is_on_the_page() -> None:
    modules = {name: metric.function.__module__ for name, metric in METRICS.items()}
    measures = {name for name, module in modules.items() if module.startswith("fedanon.sdc.metrics")}
    assert len(measures) > 50
    named = set(re.findall(r"`([a-z0-9_]+)`", PAGE.read_text(encoding="utf-8")))
    assert measures <= named
