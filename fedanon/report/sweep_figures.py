"""Figures of a sweep: risk against loss with the front and what is recommended, and one panel a method."""

from __future__ import annotations

import pandas as pd

from fedanon.harness.pareto import LIMIT, choose, pareto_front
from fedanon.report.charts import MAJORITY, REFERENCE, Panel, Series, spans_decades
from fedanon.report.document import Figure
from fedanon.report.figure_parts import axis, floats, make_figure
from fedanon.report.places import several
from fedanon.report.sweep_points import variant_style
from fedanon.report.words import meaning

#: letters of a value beside a point
MAX_TEXT = 14


def overview(name: str, points: pd.DataFrame, risks: list[str], loss: str) -> Figure | None:
    """All points by family, the front, and the three recommended ones; one panel a measure of risk."""
    caption = (
        "One marker a method, variant and value; means over seeds. No point has less risk and less loss than one on "
        f"the dotted front. Stars are recommended within a risk of {LIMIT:g}: least loss, best compromise, least risk."
    )
    panels = [_overview_panel(points.dropna(subset=[risk, loss]), risk, loss) for risk in risks]
    return make_figure(f"{name}-risk-and-loss", "Risk against loss", caption, panels)


def _overview_panel(points: pd.DataFrame, risk: str, loss: str) -> Panel:
    families = list(dict.fromkeys(points["family"]))
    series = [
        _series(family, number, points[points["family"] == family], loss, risk, form="points")
        for number, family in enumerate(families)
    ]
    front = points[pareto_front(points[risk], points[loss])].sort_values([risk, loss])
    series.append(Series(label="front", style=MAJORITY, x=floats(front[loss]), y=floats(front[risk])))
    chosen = choose(points[risk], points[loss])
    series.append(
        Series(
            label="recommended",
            style=REFERENCE,
            x=tuple(choice.loss for choice in chosen),
            y=tuple(choice.risk for choice in chosen),
            texts=tuple(choice.goal for choice in chosen),
            form="points",
        )
    )
    return _panel(meaning(risk).title, points, risk, loss, series)


def by_method(name: str, points: pd.DataFrame, risk: str, loss: str) -> Figure | None:
    """One panel a method that has several values, one line a variant; the small texts are the values."""
    caption = "One line a variant of the method, one marker a value of its parameter (the small texts)."
    panels = [
        _panel(str(method), part, risk, loss, _variants(part, risk, loss))
        for method, part in points.dropna(subset=[risk, loss]).groupby("method", sort=False)
        if several(part["value"])
    ]
    return make_figure(f"{name}-by-method", "Every method by itself", caption, panels)


def _variants(points: pd.DataFrame, risk: str, loss: str) -> list[Series]:
    return [
        _series(str(name), variant_style(str(name)), part, loss, risk, texts=name == "plain")
        for name, part in points.groupby("variant", sort=False)
    ]


def usefulness(name: str, points: pd.DataFrame, risk: str, score: str) -> Figure | None:
    """A score of a model against risk, one line a method; the marker of a method without values is a reference."""
    caption = (
        "One line a method, one marker a value of its parameter (the small texts); means over seeds. Best is top left."
    )
    known = points.dropna(subset=[risk, score])
    series = []
    for number, (label, part) in enumerate(known.groupby("label", sort=False)):
        series.append(
            _series(str(label), REFERENCE if len(part) == 1 else number, part, risk, score, texts=len(part) > 1)
        )
    log = spans_decades(known[risk].tolist())
    panel = Panel(
        title=meaning(score).title,
        x_label=axis(risk, log=log),
        y_label=axis(score, cut=True),
        series=tuple(series),
        x_log=log,
        x_zero=True,
    )
    return make_figure(f"{name}-usefulness", "Usefulness at the same risk", caption, [panel])


def _panel(title: str, points: pd.DataFrame, risk: str, loss: str, series: list[Series]) -> Panel:
    log = spans_decades(points[loss].tolist())
    return Panel(
        title=title,
        x_label=axis(loss, log=log),
        y_label=axis(risk),
        series=tuple(series),
        x_log=log,
        x_zero=True,
        y_zero=True,
    )


def _series(
    label: str, style: int, part: pd.DataFrame, x: str, y: str, *, form: str = "line", texts: bool = False
) -> Series:
    words = tuple(text.rpartition("=")[2][:MAX_TEXT] for text in part["value"]) if texts else ()
    return Series(label=label, style=style, x=floats(part[x]), y=floats(part[y]), texts=words, form=form)  # type: ignore[arg-type]
