"""Metric: a registered function with what a report needs to show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fedanon.data.table import Table
from fedanon.metrics import METRICS
from fedanon.release.release import Release

MetricFunction = Callable[[Table, Release], float]


@dataclass(frozen=True)
class Metric:
    """A number about a release.

    Parameters
    ----------
    function : computes it; NaN where it does not apply.
    title : its name for people.
    better : which direction is good for the person who reads it; 'neither' for a plain description.
    help : one sentence, the first of the function's docstring.
    """

    function: MetricFunction
    title: str
    better: Literal["lower", "higher", "neither"]
    help: str


def metric(
    name: str, *, title: str, better: Literal["lower", "higher", "neither"]
) -> Callable[[MetricFunction], MetricFunction]:
    """Decorator that registers a function as the metric ``name`` and leaves it as it is."""

    def add(function: MetricFunction) -> MetricFunction:
        summary = (function.__doc__ or "").strip().split("\n\n")[0]
        METRICS.register(name)(Metric(function, title, better, " ".join(summary.split())))
        return function

    return add
