"""Charts as data: panels of series, drawn by :mod:`fedanon.report.drawing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: the style of the method the others are compared with
REFERENCE = -1
#: styles of judgements, beside the colours of the methods
WITHIN, BEYOND = -2, -3
#: the style of the level every classifier has to beat
MAJORITY = -4


@dataclass(frozen=True, kw_only=True)
class Series:
    """Numbers that belong together.

    Parameters
    ----------
    label : its name.
    style : colour, marker and dash: a number from 0, or one of the constants of this module.
    x, y : the points.
    low, high : ends of an interval of every y; empty where there is none.
    texts : words beside the points, such as k.
    form : a line with markers, a line in a band, markers alone, bars from 0, or a level across the panel (y[0]).
    """

    label: str
    style: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    form: Literal["line", "band", "points", "bars", "level"] = "line"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A pair of axes.

    Parameters
    ----------
    title : which part of the results it shows; may be empty.
    x_label, y_label : of the axes.
    x_ticks, y_ticks : places with words; chosen by the scale if empty.
    x_log, y_log : logarithmic axes.
    y_zero : the y axis starts at 0.
    diagonal : with the line y = x.
    intervals_across : ``low`` and ``high`` are ends of x, not of y.
    small : as small as a line of text or two, without a y axis: one of many, to be seen at a glance.
    words : the panel in words, for those who do not see it; made from the points if empty.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_ticks: tuple[tuple[float, str], ...] = ()
    y_ticks: tuple[tuple[float, str], ...] = ()
    x_log: bool = False
    y_log: bool = False
    x_zero: bool = False
    y_zero: bool = False
    diagonal: bool = False
    intervals_across: bool = False
    small: bool = False
    words: str = ""


def spans_decades(values: list[float]) -> bool:
    """Whether small values would vanish on a linear axis."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > 30


def describe(panel: Panel) -> str:
    """A panel in words: its own, else the axes, and where every series starts and ends."""
    if panel.words:
        return panel.words
    axes = [" ".join(label.split()) for label in (panel.y_label, panel.x_label) if label]
    what = f"Axes: {' against '.join(axes)}." if axes else ""
    parts = [f"{s.label}: {_points(s)}" for s in panel.series[:12]]
    more = f"; and {len(panel.series) - 12} more" if len(panel.series) > 12 else ""
    return " ".join(filter(None, [f"{panel.title}." if panel.title else "", what, "; ".join(parts) + more + "."]))


def _points(series: Series) -> str:
    if series.form == "level":
        return f"{series.y[0]:.3g} throughout"
    first, last = (f"{series.y[i]:.3g} at {series.x[i]:.3g}" for i in (0, -1))
    return first if len(series.y) == 1 else f"{first} to {last}"
