"""Metric: a registered function with what a report needs to show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fedanon.data.table import Table
from fedanon.metrics import METRICS
from fedanon.release.release import Release
from fedanon.release.view import PublishedView

MetricFunction = Callable[[Table, Release], float]
ViewFunction = Callable[[PublishedView], float]
Direction = Literal["lower", "higher", "neither"]


@dataclass(frozen=True)
class Metric:
    """A number about a release.

    Parameters
    ----------
    function : computes it; NaN where it does not apply.
    title : its name for people.
    better : which direction is good for the person who reads it; 'neither' for a plain description.
    help : one sentence, the first of the function's docstring.
    of_view : computes it from what is published alone; None if it takes the originals.
    """

    function: MetricFunction
    title: str
    better: Direction
    help: str
    of_view: ViewFunction | None = None


def metric(name: str, *, title: str, better: Direction) -> Callable[[MetricFunction], MetricFunction]:
    """Decorator that registers a function of a table and its release as the metric ``name`` and leaves it as it is."""

    def add(function: MetricFunction) -> MetricFunction:
        METRICS.register(name)(Metric(function, title, better, _summary(function)))
        return function

    return add


def view_metric(name: str, *, title: str, better: Direction) -> Callable[[ViewFunction], ViewFunction]:
    """:func:`metric` for a number that follows from what is published, so that a released file alone shows it."""

    def add(function: ViewFunction) -> ViewFunction:
        METRICS.register(name)(
            Metric(lambda _, release: function(release), title, better, _summary(function), function)
        )
        return function

    return add


def _summary(function: Callable[..., float]) -> str:
    return " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())
