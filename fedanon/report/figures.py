"""The figures of a grid: trade-offs, cost across k and requirements, time, convergence, and published numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fedanon.harness.frames import summary
from fedanon.metrics import METRICS
from fedanon.report.charts import BEYOND, MAJORITY, WITHIN, Panel, Series, spans_decades
from fedanon.report.document import Figure
from fedanon.report.figure_parts import (
    Styles,
    axis,
    floats,
    make_figure,
    n_points,
    panel_title,
    remark,
    score_span,
    ticks,
)
from fedanon.report.glossary import meaning
from fedanon.report.grouping import LABELING, LOSS, RANKING, RISK, first_of, of_releases, panels_of, several

#: scores by round beside the ranking and the accuracy; the last two are what the thesis plots of some nodes per round
BY_ROUND = ("accuracy", "log_loss", "accuracy_trained", "auc_client_mean_trained")
#: fewest seeds for which a figure shows intervals; with two, Student's t makes them useless
MIN_SEEDS = 3


def figures_of(name: str, frame: pd.DataFrame, curves: pd.DataFrame, styles: Styles) -> list[Figure]:
    """Return all figures that the numbers of one grid allow."""
    loss, risk, useful = (first_of(frame, names) for names in (LOSS, RISK, (*RANKING, *LABELING)))
    pairs = [*_pairs(frame, loss, risk, styles), *_pairs(frame, risk, useful, styles)]
    caption = (
        "One marker per method and k (the small numbers); means over seeds. The best corner is the bottom left for "
        "loss and risk, the top left for usefulness and risk."
    )
    costs = _across_k if several(frame["k"].dropna()) else _side_by_side
    found = [make_figure(f"{name}-trade-off", "The trade-off", caption, pairs)]
    found += [loss_and_requirement(name, frame, styles), costs(name, frame, styles), loss_and_time(name, frame, styles)]
    if len(curves):
        found += convergence(name, curves, styles)
    return [figure for figure in found if figure is not None]


def _key_parts(frame: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Return metric, panel title and numbers: loss and risk once per release, scores once per model."""
    names = [first_of(frame, choice) for choice in (LOSS, RISK, RANKING, LABELING)]
    parts = []
    for name in (name for name in names if name is not None):
        numbers = frame[frame["measure"] == name]
        numbers = of_releases(numbers) if name in METRICS else numbers
        parts += [(name, title, part) for title, part in panels_of(numbers)]
    return parts


def _across_k(name: str, frame: pd.DataFrame, styles: Styles) -> Figure | None:
    parts = [(metric, title, part) for metric, title, part in _key_parts(frame) if part["k"].notna().any()]
    panels = [_k_panel(metric, title, summary(part), styles, _majority(metric, frame)) for metric, title, part in parts]
    caption = (
        "One line per method; a level line is a method without k. Vertical bars are 95 % intervals over seeds, from "
        "three seeds on. Axes of scores do not start at 0."
    )
    return make_figure(f"{name}-across-k", "What each k costs", caption, panels)


def _majority(metric: str, frame: pd.DataFrame) -> tuple[Series, ...]:
    """Return the accuracy of always predicting the more common class, if it is known and the same everywhere."""
    known = frame[frame["measure"] == "majority_share"]["value"]
    if not metric.startswith("accuracy") or len(set(known)) != 1:
        return ()
    return (Series(label="majority class", style=MAJORITY, x=(0.0,), y=(float(known.iloc[0]),), form="level"),)


def _k_panel(metric: str, title: str, table: pd.DataFrame, styles: Styles, levels: tuple[Series, ...] = ()) -> Panel:
    ks = sorted(int(k) for k in table["k"].dropna().unique())
    release = metric in METRICS
    y_log = release and spans_decades(table["mean"].tolist())
    return Panel(
        title=panel_title(metric, title),
        x_label="k",
        y_label=remark(cut=not release, log=y_log),
        series=(*(_k_series(str(name), part, styles) for name, part in table.groupby("series", sort=False)), *levels),
        x_ticks=ticks(ks),
        x_log=len(ks) > 1 and ks[-1] / ks[0] >= 4,
        y_zero=release,
        y_span=score_span(metric),
        y_log=y_log,
    )


def _k_series(name: str, table: pd.DataFrame, styles: Styles) -> Series:
    if table["k"].isna().all():
        return Series(label=name, style=styles[name], x=(0.0,), y=(float(table["mean"].iloc[0]),), form="level")
    table = table.dropna(subset=["k"]).sort_values("k")
    return Series(label=name, style=styles[name], x=floats(table["k"]), y=floats(table["mean"]), **_intervals(table))


def _pairs(frame: pd.DataFrame, x: str | None, y: str | None, styles: Styles) -> list[Panel]:
    """Plot two metrics of the same cells against each other; points are labeled with k."""
    if x is None or y is None:
        return []
    numbers = frame[frame["measure"].isin([x, y])]
    numbers = of_releases(numbers) if x in METRICS and y in METRICS else numbers
    kind = "Loss and risk" if y in METRICS else "Usefulness and risk"
    titled = [(": ".join(filter(None, [kind, title])), part) for title, part in panels_of(numbers)]
    panels = [_pair_panel(title, part, x, y, styles) for title, part in titled]
    return [panel for panel in panels if n_points(panel) > 1]


def _pair_panel(title: str, frame: pd.DataFrame, x: str, y: str, styles: Styles) -> Panel:
    means = frame.groupby(["series", "k", "measure"], dropna=False, sort=False)["value"].mean().reset_index()
    of_x, of_y = (
        means[means["measure"] == name].drop(columns="measure").rename(columns={"value": name}) for name in (x, y)
    )
    means = of_x.merge(of_y, on=["series", "k"])
    logs = {name: name in METRICS and spans_decades(means[name].tolist()) for name in (x, y)}
    return Panel(
        title=title,
        x_label=axis(x, cut=x not in METRICS, log=logs[x]),
        y_label=axis(y, cut=y not in METRICS, log=logs[y]),
        series=tuple(_pair_series(str(n), part, x, y, styles) for n, part in means.groupby("series", sort=False)),
        x_log=logs[x],
        y_log=logs[y],
        x_zero=x in METRICS,
        y_zero=y in METRICS,
        y_span=score_span(y),
    )


def _pair_series(name: str, points: pd.DataFrame, x: str, y: str, styles: Styles) -> Series:
    points = points.sort_values("k")
    texts = tuple("" if pd.isna(k) else str(k) for k in points["k"])
    return Series(label=name, style=styles[name], x=floats(points[x]), y=floats(points[y]), texts=texts)


def _side_by_side(name: str, frame: pd.DataFrame, styles: Styles) -> Figure | None:
    """Show values line by line, for methods that have no k or all the same."""
    panels = [_lines_panel(metric, title, summary(part), styles) for metric, title, part in _key_parts(frame)]
    caption = "One line per method. Horizontal bars are 95 % intervals over seeds, from three seeds on."
    return make_figure(f"{name}-side-by-side", "Side by side", caption, [p for p in panels if len(p.series) > 1])


def _lines_panel(metric: str, title: str, table: pd.DataFrame, styles: Styles) -> Panel:
    rows = list(enumerate(table.to_dict("records")))
    labels = [f"{row['series']}" + ("" if pd.isna(row["k"]) else f", k = {row['k']}") for _, row in rows]
    return Panel(
        title=panel_title(metric, title),
        x_label=remark(cut=metric not in METRICS),
        y_label="",
        series=tuple(
            Series(
                label=row["series"],
                style=styles[row["series"]],
                x=(row["mean"],),
                y=(float(i),),
                form="points",
                **_intervals(table.iloc[[i]]),
            )
            for i, row in rows
        ),
        y_ticks=tuple((float(i), label) for i, label in enumerate(labels)),
        x_zero=metric in METRICS,
        intervals_across=True,
    )


def _intervals(table: pd.DataFrame) -> dict[str, Any]:
    if not (table["n"] >= MIN_SEEDS).any():
        return {}
    shown = (table["n"] >= MIN_SEEDS) & np.isfinite(table["low"])
    return {
        "low": floats(table["low"].where(shown, table["mean"])),
        "high": floats(table["high"].where(shown, table["mean"])),
    }


# ---- scores of a federation, round by round ------------------------------------------------------


def convergence(name: str, curves: pd.DataFrame, styles: Styles) -> list[Figure]:
    """Show scores by round, one figure per score with one panel per group and k; none without rounds to compare.

    The scores are a ranking, accuracy and log-loss; as published, also those of the nodes that trained in a round.
    """
    known = set(curves["measure"])
    first = first_of(curves, (*RANKING, *LABELING)) or str(curves["measure"].iloc[0])
    metrics = dict.fromkeys([first, *(metric for metric in BY_ROUND if metric in known)])
    figures = [_convergence_of(metric, name, curves, styles) for metric in metrics]
    return [figure for figure in figures if figure is not None]


def _convergence_of(metric: str, name: str, curves: pd.DataFrame, styles: Styles) -> Figure | None:
    panels = []
    for title, part in panels_of(curves[curves["measure"] == metric]):
        for k, lines in _by_k(part):
            where = ", ".join(filter(None, [title, k]))
            panels.append(_rounds_panel(where, metric, lines, styles))
    caption = "One line per method: the mean over seeds, in a band from the lowest to the highest. The axis is cut."
    panels = [panel for panel in panels if len(panel.series[0].x) > 1]
    return make_figure(f"{name}-convergence-{metric}", f"Convergence: {meaning(metric).title}", caption, panels)


def _by_k(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the numbers of every k together with the methods that have none."""
    ks = sorted(frame["k"].dropna().unique())
    return [(f"k = {k}", frame[frame["k"].isna() | (frame["k"] == k)]) for k in ks] or [("", frame)]


def _rounds_panel(title: str, metric: str, frame: pd.DataFrame, styles: Styles) -> Panel:
    series = []
    for name, part in frame.groupby("series", sort=False):
        table = part.groupby("round")["value"].agg(["mean", "min", "max", "count"]).reset_index()
        x, y, low, high = (floats(table[column]) for column in ("round", "mean", "min", "max"))
        band: dict[str, Any] = {"low": low, "high": high} if table["count"].max() > 1 else {}
        series.append(Series(label=str(name), style=styles[str(name)], x=x, y=y, form="band", **band))
    rounds = ticks(sorted(int(number) for number in frame["round"].unique()))
    return Panel(
        title=title,
        x_label="round",
        y_label=axis(metric, cut=True),
        series=tuple(series),
        x_ticks=rounds,
        y_span=score_span(metric),
    )


# ---- requirements beyond k -----------------------------------------------------------------------

REQUIRE = "require"
K_ALONE = "k alone"


def loss_and_requirement(name: str, frame: pd.DataFrame, styles: Styles) -> Figure | None:
    """Show loss across requirements in the order of the experiment, one panel per group and k; None for only one."""
    loss = first_of(frame, LOSS)
    if loss is None or REQUIRE not in frame or not several(frame[REQUIRE]):
        return None
    numbers = frame[(frame["measure"] == loss) & frame["k"].notna()].fillna({REQUIRE: ""})
    order = {text: float(place) for place, text in enumerate(dict.fromkeys(numbers[REQUIRE]))}
    numbers = numbers.assign(place=numbers[REQUIRE].map(order)).drop(columns=REQUIRE)
    panels = []
    for k, at_k in numbers.groupby("k"):
        for title, part in panels_of(at_k.drop(columns="place")):
            where = ", ".join(filter(None, [title, f"k = {k}"]))
            panels.append(_requirement_panel(panel_title(loss, where), at_k.loc[part.index], order, styles))
    caption = "One marker per method; means over seeds. Requirements are in the order of the experiment."
    return make_figure(f"{name}-requirements", "What each requirement costs", caption, panels)


def _requirement_panel(title: str, frame: pd.DataFrame, order: dict[str, float], styles: Styles) -> Panel:
    """Markers side by side: requirements have no order that a line could follow."""
    means = frame.groupby(["series", "place"], sort=False)["value"].mean().reset_index().sort_values("place")
    names = list(dict.fromkeys(means["series"]))
    means["place"] += means["series"].map(lambda name: 0.12 * (names.index(name) - (len(names) - 1) / 2))
    return Panel(
        title=title,
        x_label="required beyond k",
        y_label=remark(cut=False),
        series=tuple(
            Series(
                label=str(series),
                style=styles[str(series)],
                x=floats(part["place"]),
                y=floats(part["value"]),
                form="points",
            )
            for series, part in means.groupby("series", sort=False)
        ),
        x_ticks=tuple((place, _short(text)) for text, place in order.items()),
        y_zero=True,
    )


def _short(requirement: str) -> str:
    """Return a requirement without its columns, which are the same throughout a grid."""
    return ", ".join(item.split(":")[0] for item in requirement.split(",")) if requirement else K_ALONE


# ---- loss against time ---------------------------------------------------------------------------

TIME = "cpu_seconds"


def loss_and_time(name: str, frame: pd.DataFrame, styles: Styles) -> Figure | None:
    """Show loss against computing time, one panel per group and k; None if nothing was timed."""
    loss = first_of(frame, LOSS)
    if loss is None or TIME not in set(frame["measure"]):
        return None
    panels = []
    for title, part in panels_of(frame[frame["measure"].isin([TIME, loss]) & frame["k"].notna()]):
        for k, at_k in part.groupby("k"):
            panels.append(_time_panel(", ".join(filter(None, [title, f"k = {k}"])), at_k, loss, styles))
    caption = (
        "One marker per method: its loss, and the computing time of its release on one core; means over seeds. The "
        "bottom left corner is best. Times are from one machine: compare them only with each other."
    )
    return make_figure(f"{name}-time", "Loss against time", caption, [p for p in panels if n_points(p) > 1])


def _time_panel(title: str, frame: pd.DataFrame, loss: str, styles: Styles) -> Panel:
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


# ---- published numbers ---------------------------------------------------------------------------


def published_figure(name: str, comparison: pd.DataFrame) -> Figure | None:
    """Show our numbers against the published ones, one panel per metric; on the line both are equal."""
    both = comparison.dropna(subset=["ours"])
    panels = [_published_panel(str(metric), part) for metric, part in both.groupby("measure", sort=False)]
    caption = "On the line, both are equal. Crosses differ by more than the stated tolerance."
    return make_figure(
        f"{name}-published", "Published numbers and ours", caption, [p for p in panels if n_points(p) > 1]
    )


def _published_panel(metric: str, part: pd.DataFrame) -> Panel:
    beyond = part["within"].astype(str) == "False"
    parts = (("within tolerance, or not judged", WITHIN, part[~beyond]), ("beyond tolerance", BEYOND, part[beyond]))
    series = [
        Series(label=label, style=look, x=floats(p["published"]), y=floats(p["ours"]), form="points")
        for label, look, p in parts
        if len(p)
    ]
    log = spans_decades([*part["published"], *part["ours"]])
    return Panel(
        title=meaning(metric).title,
        x_label="published",
        y_label="ours",
        series=tuple(series),
        x_log=log,
        y_log=log,
        diagonal=True,
    )
