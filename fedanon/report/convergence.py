"""How the scores of a federation come along, round by round."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fedanon.report.charts import Panel, Series
from fedanon.report.document import Figure
from fedanon.report.figure_parts import Styles, axis, floats, make_figure, ticks
from fedanon.report.places import LABELLING, RANKING, first_of, panels_of


def convergence(name: str, curves: pd.DataFrame, styles: Styles) -> Figure | None:
    """Scores by round, one panel a place and k; None without rounds to compare."""
    measure = first_of(curves, (*RANKING, *LABELLING)) or str(curves["measure"].iloc[0])
    panels = []
    for title, part in panels_of(curves[curves["measure"] == measure]):
        for k, lines in _by_k(part):
            words = ", ".join(filter(None, [title, k]))
            panels.append(_rounds_panel(words, measure, lines, styles))
    caption = "One line a method: the mean over seeds, in a band from the lowest to the highest seed. The axis is cut."
    return make_figure(f"{name}-convergence", "Convergence", caption, [p for p in panels if len(p.series[0].x) > 1])


def _by_k(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Every k with the methods that have none."""
    ks = sorted(frame["k"].dropna().unique())
    return [(f"k = {k}", frame[frame["k"].isna() | (frame["k"] == k)]) for k in ks] or [("", frame)]


def _rounds_panel(title: str, measure: str, frame: pd.DataFrame, styles: Styles) -> Panel:
    series = []
    for name, part in frame.groupby("series", sort=False):
        table = part.groupby("round")["value"].agg(["mean", "min", "max", "count"]).reset_index()
        x, y, low, high = (floats(table[column]) for column in ("round", "mean", "min", "max"))
        band: dict[str, Any] = {"low": low, "high": high} if table["count"].max() > 1 else {}
        series.append(Series(label=str(name), style=styles[str(name)], x=x, y=y, form="band", **band))
    places = ticks(sorted(int(number) for number in frame["round"].unique()))
    return Panel(title=title, x_label="round", y_label=axis(measure, cut=True), series=tuple(series), x_ticks=places)
