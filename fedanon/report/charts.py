"""Charts as data: panels of series and their styles, drawn by :mod:`fedanon.report.drawing`.

Color-blind readers can tell the series apart, on light and dark screens and on paper. The hues are those of Okabe & Ito
(2008), darkened for white paper and lightened for dark screens until each has a contrast of at least 3 to 1; markers
and dashes differ too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

Form = Literal["line", "band", "points", "bars", "level"]

#: the style of the method the others are compared with
REFERENCE = -1
#: styles of verdicts, in addition to those of the methods
WITHIN, BEYOND = -2, -3
#: the style of the level that every classifier has to beat
MAJORITY = -4
#: a line without a marker, for a key of dashes
LINE = -5


@dataclass(frozen=True, kw_only=True)
class Series:
    """Numbers that belong together.

    Parameters
    ----------
    label : its name.
    style : color, marker and dash: a number from 0, or one of the constants of this module.
    x, y : the points; none of an entry that is in the legend alone.
    low, high : ends of the interval around every y; empty if there is none.
    texts : labels of the points, such as k.
    form : a line with markers, a line in a band, markers alone, bars from 0, or a level across the panel (y[0], with a
        band if there is an interval).
    dash : of the line, a number of DASHES; 0 is that of the style.
    """

    label: str
    style: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    form: Form = "line"
    dash: int = 0


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A pair of axes.

    Parameters
    ----------
    title : which part of the results it shows; may be empty.
    x_label, y_label : of the axes.
    x_ticks, y_ticks : positions with labels; chosen by the scale if empty.
    x_log, y_log : logarithmic axes.
    y_zero : the y axis starts at 0.
    y_span : the y axis covers at least this much, so that a small difference looks small.
    diagonal : with the line y = x.
    intervals_across : ``low`` and ``high`` are ends of x, not of y.
    small : as small as a line of text or two, without a y axis: one of many, to be seen at a glance.
    large : as large as a page is wide, for many series; alone in its figure.
    description : the panel as text, for readers who cannot see it; made from the points if empty.
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
    y_span: float = 0.0
    diagonal: bool = False
    intervals_across: bool = False
    small: bool = False
    large: bool = False
    description: str = ""


def spans_decades(values: list[float]) -> bool:
    """Return whether small values would vanish on a linear axis."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > 30


def describe(panel: Panel) -> str:
    """Describe a panel: by its own text, or by its axes and where every series starts and ends."""
    if panel.description:
        return panel.description
    axes = [" ".join(label.split()) for label in (panel.y_label, panel.x_label) if label]
    what = f"Axes: {' against '.join(axes)}." if axes else ""
    drawn = [series for series in panel.series if series.x]
    parts = [f"{s.label}: {_points(s)}" for s in drawn[:12]]
    more = f"; and {len(drawn) - 12} more" if len(drawn) > 12 else ""
    return " ".join(filter(None, [f"{panel.title}." if panel.title else "", what, "; ".join(parts) + more + "."]))


def _points(series: Series) -> str:
    if series.form == "level":
        return f"{series.y[0]:.3g} throughout"
    first, last = (f"{series.y[i]:.3g} at {series.x[i]:.3g}" for i in (0, -1))
    return first if len(series.y) == 1 else f"{first} to {last}"


# ---- styles --------------------------------------------------------------------------------------

#: colors of text and of lines behind the data, on white; a page replaces them by its own
INK, FAINT = "#1c2530", "#d9dfe6"
LIGHT = ("#0072b2", "#c44e00", "#00805c", "#a8447f", "#957000", "#2b86bd", "#6a51c4", "#6b7280")
DARK = ("#4ba8e8", "#ff9550", "#2fc79c", "#e89ac8", "#e5b93c", "#9bd7ff", "#b3a2ff", "#aab2bd")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
DASHES = ("solid", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))


@dataclass(frozen=True)
class Style:
    """The appearance of a series, as matplotlib takes it."""

    color: str
    marker: str
    dash: Any


def style(index: int) -> Style:
    """Return the style of series ``index``; colors repeat after eight, with another marker."""
    if index == REFERENCE:
        return Style(INK, "*", (0, (6, 2)))
    if index == MAJORITY:
        return Style(LIGHT[-1], "_", (0, (1, 1.5)))
    if index == LINE:
        return Style(INK, "", "solid")
    if index == WITHIN:
        return Style(LIGHT[0], "o", "none")
    if index == BEYOND:
        return Style(LIGHT[1], "X", "none")
    return Style(LIGHT[index % len(LIGHT)], MARKERS[index % len(MARKERS)], DASHES[index // len(LIGHT) % len(DASHES)])


def style_of(series: Series) -> Style:
    """Return the style of a series with its own dash."""
    look = style(series.style)
    return replace(look, dash=DASHES[series.dash]) if series.dash else look


def variables() -> dict[str, str]:
    """Return what replaces every color on a page: ``#0072b2`` becomes ``var(--s0)``."""
    return {INK: "currentColor", FAINT: "var(--faint)"} | {color: f"var(--s{i})" for i, color in enumerate(LIGHT)}
