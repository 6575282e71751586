"""What the figures share: titles, axes, ticks, and the table of numbers behind a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from fedanon.report.charts import Panel, Series
from fedanon.report.document import Figure, TableBlock, TableCell, TableColumn
from fedanon.report.glossary import meaning
from fedanon.report.numbers import NOTHING, cell, number

#: the style of every series of a result set, the same in all its figures
Styles = Mapping[str, int]


def n_points(panel: Panel) -> int:
    """Count the points of all series."""
    return sum(len(one.x) for one in panel.series)


def make_figure(name: str, title: str, caption: str, panels: list[Panel]) -> Figure | None:
    """Return a figure with its table; None without panels."""
    return Figure(name, title, caption, tuple(panels), table_of(title, panels)) if panels else None


def panel_title(metric: str, place: str) -> str:
    """Return a title such as 'AUC: adult, xgb'."""
    return ": ".join(filter(None, [meaning(metric).title, place]))


def remark(*, cut: bool, log: bool = False) -> str:
    """Return what a reader must know about an axis."""
    return "log scale" if log else "axis cut" if cut else ""


def score_span(metric: str) -> float:
    """Return the least height of an axis: of a score between 0 and 1 a difference of .01 should look small."""
    return 0.1 if metric.startswith(("accuracy", "auc", "f1", "precision", "recall")) else 0.0


def axis(metric: str, *, cut: bool = False, log: bool = False) -> str:
    """Return the label of an axis."""
    note = remark(cut=cut, log=log)
    return meaning(metric).title + (f"\n({note})" if note else "")


def floats(values: pd.Series) -> tuple[float, ...]:
    """Return a column as plain numbers."""
    return tuple(float(v) for v in values)


def ticks(positions: list[int]) -> tuple[tuple[float, str], ...]:
    """Choose some of the positions on an axis of whole numbers."""
    step = -(-len(positions) // 7)  # at most seven, so that they do not touch, including the last
    return tuple((float(at), str(at)) for at in positions[::-1][::step][::-1])


# ---- the numbers behind a figure -----------------------------------------------------------------

#: most rounds of a curve in its table
MAX_ROUNDS = 8


def table_of(title: str, panels: Sequence[Panel]) -> TableBlock:
    """Return one row per point; for long curves, some rounds including the last."""
    columns = (
        TableColumn("Panel"),
        TableColumn("Series"),
        TableColumn("Point"),
        *(TableColumn(t, True) for t in ("x", "y", "From", "To")),
    )
    rows = tuple(row for panel in panels for series in panel.series for row in _rows(panel, series))
    return TableBlock(f"{title}: the numbers (x and y as on the axes)", columns, rows)


def _rows(panel: Panel, series: Series) -> Iterator[tuple[TableCell, ...]]:
    lines = dict(panel.y_ticks)
    name = panel.title or " ".join(panel.y_label.split())
    for i in _chosen(len(series.y)):
        # a level has no x value; labeled lines have no y value
        x = TableCell(NOTHING) if series.form == "level" else cell(series.x[i])
        y = TableCell(NOTHING) if series.y[i] in lines else cell(series.y[i])
        ends = [cell(end[i]) if end else TableCell(NOTHING) for end in (series.low, series.high)]
        text = (
            series.texts[i]
            if series.texts
            else lines.get(series.y[i], "" if series.form == "level" else number(series.x[i]))
        )
        yield TableCell(name), TableCell(series.label), TableCell(text or NOTHING), x, y, *ends


def _chosen(n: int) -> list[int]:
    if n <= MAX_ROUNDS:
        return list(range(n))
    return sorted({round(i * (n - 1) / (MAX_ROUNDS - 1)) for i in range(MAX_ROUNDS)})
