"""What a report shows of a sweep: risk against loss for masked columns, usefulness against risk for a federation."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from fedanon.report.charts import MAJORITY, REFERENCE, Form, Panel, Series, spans_decades
from fedanon.report.document import Block, Details, Figure, TableBlock, TableCell, TableColumn
from fedanon.report.figure_parts import axis, floats, make_figure, score_span
from fedanon.report.glossary import meaning
from fedanon.report.grouping import LOSS, RANKING, RISK, first_of, several
from fedanon.report.numbers import NOTHING, cell, number
from fedanon.sdc.masking import variant, varied
from fedanon.sdc.pareto import LIMIT, choose, pareto_front, ranks
from fedanon.sdc.sweeps import SWEEPS, VARIANTS

#: shown next to the first metric of risk
SECOND_RISK = "interval_risk"


def figures_of_sweep(name: str, frame: pd.DataFrame) -> list[Figure]:
    """Return the figures the metrics allow."""
    risk, score, points = first_of(frame, RISK), first_of(frame, RANKING), points_of(frame)
    axes = _axes(frame)
    found = []
    if axes is not None:
        risks = [axes[0], *([SECOND_RISK] if SECOND_RISK in points else [])]
        found = [overview(name, points, risks, axes[1]), by_method(name, points, *axes)]
    elif risk is not None and score is not None:
        found = [usefulness(name, points, risk, score)]
    return [figure for figure in found if figure is not None]


def tables_of_sweep(name: str, frame: pd.DataFrame) -> list[Block]:
    """Return the recommendation and all points ranked; nothing unless risk and loss are known and models are not."""
    axes = _axes(frame)
    if axes is None:
        return []
    points = points_of(frame)
    ranked = ranked_table(f"{name}: all points, ranked by the front they lie on", points, *axes)
    return [recommended_table(points, *axes), Details(f"{ranked.caption} ({len(ranked.rows)} rows)", (ranked,))]


def sentences_of_sweep(frame: pd.DataFrame) -> list[str]:
    """Return the recommendation as a sentence."""
    axes = _axes(frame)
    return [] if axes is None else [recommended_sentence(str(frame["grid"].iloc[0]), points_of(frame), *axes)]


def _axes(frame: pd.DataFrame) -> tuple[str, str] | None:
    risk, loss = first_of(frame, RISK), first_of(frame, LOSS)
    if risk is None or loss is None or first_of(frame, RANKING) is not None:
        return None
    return risk, loss


# ---- figures -------------------------------------------------------------------------------------

#: longest text beside a point
MAX_TEXT = 14


def overview(name: str, points: pd.DataFrame, risks: list[str], loss: str) -> Figure | None:
    """Show all points by family, the front, and the three recommended ones, one panel per metric of risk."""
    caption = (
        "One marker per method, variant and value; means over seeds. No point has less risk and less loss than one on "
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
    """Show one panel per method with several values, one line per variant; the small texts are the values."""
    caption = "One line per variant of the method, one marker per value of its parameter (the small texts)."
    panels = [
        _panel(str(method), part, risk, loss, _variants(part, risk, loss))
        for method, part in points.dropna(subset=[risk, loss]).groupby("method", sort=False)
        if several(part["value"])
    ]
    return make_figure(f"{name}-by-method", "Each method by itself", caption, panels)


def _variants(points: pd.DataFrame, risk: str, loss: str) -> list[Series]:
    return [
        _series(str(name), variant_style(str(name)), part, loss, risk, texts=name == "plain")
        for name, part in points.groupby("variant", sort=False)
    ]


def usefulness(name: str, points: pd.DataFrame, risk: str, score: str) -> Figure | None:
    """Show a model's score against risk, one line per method; a method with a single point is a reference."""
    caption = "One line per method, one marker per value (the small texts); means over seeds. Top left is best."
    known = points.dropna(subset=[risk, score])
    series = []
    for place, (label, part) in enumerate(known.groupby("label", sort=False)):
        series.append(
            _series(str(label), REFERENCE if len(part) == 1 else place, part, risk, score, texts=len(part) > 1)
        )
    log = spans_decades(known[risk].tolist())
    panel = Panel(
        title=meaning(score).title,
        x_label=axis(risk, log=log),
        y_label=axis(score, cut=True),
        series=tuple(series),
        x_log=log,
        x_zero=True,
        y_span=score_span(score),
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
    label: str, style: int, part: pd.DataFrame, x: str, y: str, *, form: Form = "line", texts: bool = False
) -> Series:
    values = tuple(text.rpartition("=")[2][:MAX_TEXT] for text in part["value"]) if texts else ()
    return Series(label=label, style=style, x=floats(part[x]), y=floats(part[y]), texts=values, form=form)


# ---- points --------------------------------------------------------------------------------------

#: family of the methods that have no default sweep
OTHER = "other"


def is_sweep(frame: pd.DataFrame) -> bool:
    """Return whether some method of a grid has several values of its own parameter under one label."""
    return "settings" in frame and bool(frame.drop_duplicates(["label", "settings"])["label"].duplicated().any())


def points_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per point (label, method, variant, value, family, metrics), in the order of the experiment."""
    mapped = frame["reverse_map"].astype(str).eq("True") if "reverse_map" in frame else False
    named = frame.assign(mapped=mapped)
    place = ["label", "method", "settings", "k", "mapped"]
    rows = []
    for key, part in named.groupby(place, dropna=False, sort=False):
        where = dict(zip(place, key, strict=True))
        rows.append(_named(where) | part.groupby("measure", sort=False)["value"].mean().to_dict())
    return pd.DataFrame(rows)


def _named(where: dict[str, Any]) -> dict[str, Any]:
    settings = json.loads(where["settings"])
    # a method that maps back by itself may have that among its settings
    mapped = bool(where["mapped"]) or bool(settings.pop("reverse_map", False))
    values = settings | ({} if pd.isna(where["k"]) else {"k": int(where["k"])})
    method = str(where["method"])
    sweep = SWEEPS.get(method)
    return {
        "label": where["label"],
        "method": method,
        "variant": variant(settings, reverse_map=mapped),
        "value": varied(values),
        "family": OTHER if sweep is None else sweep.family,
    }


def variant_style(name: str) -> int:
    """Return the style of a variant, the same in every panel."""
    return VARIANTS.index(name)


# ---- tables --------------------------------------------------------------------------------------

_PLACE = {"method": "Method", "variant": "Variant", "value": "Parameter"}
_NOT_METRICS = ("label", "family", *_PLACE)


def recommended_table(points: pd.DataFrame, risk: str, loss: str) -> TableBlock:
    """Return one row per goal."""
    titles = [*_PLACE.values(), meaning(risk).title, meaning(loss).title]
    columns = (TableColumn("Goal"), *(TableColumn(t, t not in _PLACE.values()) for t in titles), TableColumn("Why"))
    rows = [
        (
            TableCell(c.goal),
            *(_text(points.iloc[c.index][name]) for name in _PLACE),
            cell(c.risk),
            cell(c.loss),
            TableCell(c.why),
        )
        for c in choose(points[risk], points[loss])
    ]
    return TableBlock(f"Recommended, by {meaning(risk).title} and {meaning(loss).title}", columns, tuple(rows))


def recommended_sentence(grid: str, points: pd.DataFrame, risk: str, loss: str) -> str:
    """Return the three choices in one sentence."""
    chosen = [
        f"{c.goal} {_name(points.iloc[c.index])} (risk {number(round(c.risk, 4))}, loss {number(round(c.loss, 4))})"
        for c in choose(points[risk], points[loss])
    ]
    return f"{grid}, {meaning(risk).title} at most {LIMIT:g}: {'; '.join(chosen)}."


def ranked_table(caption: str, points: pd.DataFrame, risk: str, loss: str) -> TableBlock:
    """Rank all points by the front they lie on, then by risk; no other beats rank 1 in both risk and loss."""
    ordered = points.assign(rank=ranks(points[risk], points[loss])).sort_values(["rank", risk, loss], kind="stable")
    metrics = [name for name in points.columns if name not in _NOT_METRICS]
    metrics = [risk, loss, *(name for name in metrics if name not in (risk, loss))]
    columns = [TableColumn("Rank", True), *(TableColumn(title) for title in _PLACE.values())]
    columns += [TableColumn(meaning(name).title, True, name) for name in metrics]
    rows = [
        (cell(row["rank"]), *(_text(row[name]) for name in _PLACE), *(cell(row[name]) for name in metrics))
        for row in ordered.to_dict("records")
    ]
    return TableBlock(caption, tuple(columns), tuple(rows))


def _text(value: str) -> TableCell:
    return TableCell(value or NOTHING)


def _name(point: pd.Series) -> str:
    parts = [point["method"], point["value"], "" if point["variant"] == "plain" else point["variant"]]
    return ", ".join(filter(None, parts))
