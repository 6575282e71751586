"""Published numbers against ours."""

from __future__ import annotations

import pandas as pd

from fedanon.report.charts import BEYOND, WITHIN, Panel, Series, spans_decades
from fedanon.report.document import Figure
from fedanon.report.figure_parts import floats, make_figure, n_points
from fedanon.report.words import meaning


def published_figure(name: str, comparison: pd.DataFrame) -> Figure | None:
    """Ours against the published numbers, one panel a measure; the line is where both are equal."""
    both = comparison.dropna(subset=["ours"])
    panels = [_panel(str(measure), part) for measure, part in both.groupby("measure", sort=False)]
    caption = "On the line, both are equal. Crosses differ by more than the stated tolerance."
    return make_figure(f"{name}-published", "Published beside ours", caption, [p for p in panels if n_points(p) > 1])


def _panel(measure: str, part: pd.DataFrame) -> Panel:
    beyond = part["within"].astype(str) == "False"
    parts = (("within tolerance, or not judged", WITHIN, part[~beyond]), ("beyond tolerance", BEYOND, part[beyond]))
    series = [
        Series(label=label, style=look, x=floats(p["published"]), y=floats(p["ours"]), form="points")
        for label, look, p in parts
        if len(p)
    ]
    log = spans_decades([*part["published"], *part["ours"]])
    return Panel(
        title=meaning(measure).title,
        x_label="published",
        y_label="ours",
        series=tuple(series),
        x_log=log,
        y_log=log,
        diagonal=True,
    )
