"""What less loss costs in time: a figure for results that were timed."""

from __future__ import annotations

import pandas as pd

from fedanon.report.charts import Panel, Series, spans_decades
from fedanon.report.document import Figure
from fedanon.report.figure_parts import Styles, axis, make_figure, n_points
from fedanon.report.places import LOSS, first_of, panels_of

TIME = "cpu_seconds"


def loss_and_time(name: str, frame: pd.DataFrame, styles: Styles) -> Figure | None:
    """Loss against computing time, one panel a place and k; None where nothing was timed."""
    loss = first_of(frame, LOSS)
    if loss is None or TIME not in set(frame["measure"]):
        return None
    panels = []
    for title, part in panels_of(frame[frame["measure"].isin([TIME, loss]) & frame["k"].notna()]):
        for k, at_k in part.groupby("k"):
            panels.append(_panel(", ".join(filter(None, [title, f"k = {k}"])), at_k, loss, styles))
    caption = (
        "One marker a method: its loss, and the computing time on one core that its release took; means over seeds. "
        "Best is the bottom left corner. Times are of one machine: read them against each other."
    )
    return make_figure(f"{name}-time", "Loss against time", caption, [p for p in panels if n_points(p) > 1])


def _panel(title: str, frame: pd.DataFrame, loss: str, styles: Styles) -> Panel:
    means = frame.pivot_table(index="series", columns="measure", values="value", aggfunc="mean", sort=False)
    means = means.reindex(columns=[TIME, loss]).dropna()
    log = spans_decades(means[loss].tolist())
    return Panel(
        title=title,
        x_label=axis(TIME, log=True),
        y_label=axis(loss, log=log),
        series=tuple(
            Series(label=str(name), style=styles[str(name)], x=(float(x),), y=(float(y),), form="points")
            for name, x, y in means.itertuples()
        ),
        x_log=True,
        y_log=log,
        y_zero=True,
    )
