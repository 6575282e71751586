"""What the figures share: titles, axes and ticks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from fedanon.report.charts import Panel, Series
from fedanon.report.document import Figure, TableBlock, TableCell, TableColumn
from fedanon.report.glossary import meaning
from fedanon.report.numbers import NOTHING, cell, number

#: the looks of every series of a result set, the same in all its figures
Styles = Mapping[str, int]


def n_points(panel: Panel) -> int:
    """Points of all series."""
    return sum(len(one.x) for one in panel.series)


def make_figure(name: str, title: str, caption: str, panels: list[Panel]) -> Figure | None:
    """A figure with its table; none without panels."""
    return Figure(name, title, caption, tuple(panels), table_of(title, panels)) if panels else None


def panel_title(measure: str, place: str) -> str:
    """Such as 'AUC: adult, xgb'."""
    return ": ".join(filter(None, [meaning(measure).title, place]))


def remark(*, cut: bool, log: bool = False) -> str:
    """What a reader must know about an axis."""
    return "log scale" if log else "axis cut" if cut else ""


def axis(measure: str, *, cut: bool = False, log: bool = False) -> str:
    """What stands at an axis."""
    words = remark(cut=cut, log=log)
    return meaning(measure).title + (f"\n({words})" if words else "")


def floats(values: pd.Series) -> tuple[float, ...]:
    """A column as plain numbers."""
    return tuple(float(v) for v in values)


def ticks(places: list[int]) -> tuple[tuple[float, str], ...]:
    """Some of the places on an axis of whole numbers."""
    step = -(-len(places) // 7)  # at most seven, so that they do not touch; the last among them
    return tuple((float(place), str(place)) for place in places[::-1][::step][::-1])


# ---- The numbers behind a figure, as a table -----------------------------------------------------

#: rounds of a curve that its table shows
MAX_ROUNDS = 8


def table_of(title: str, panels: Sequence[Panel]) -> TableBlock:
    """One row a point; of long curves, some rounds with the last among them."""
    columns = (
        TableColumn("Panel"),
        TableColumn("Series"),
        TableColumn("Point"),
        *(TableColumn(t, True) for t in ("Across", "Up", "From", "To")),
    )
    rows = tuple(row for panel in panels for series in panel.series for row in _rows(panel, series))
    return TableBlock(f"{title}: the numbers (across and up as on the axes)", columns, rows)


def _rows(panel: Panel, series: Series) -> Iterator[tuple[TableCell, ...]]:
    lines = dict(panel.y_ticks)
    name = panel.title or " ".join(panel.y_label.split())
    for i in _chosen(len(series.y)):
        # a level has no place across; lines of words have none up
        across = TableCell(NOTHING) if series.form == "level" else cell(series.x[i])
        up = TableCell(NOTHING) if series.y[i] in lines else cell(series.y[i])
        ends = [cell(end[i]) if end else TableCell(NOTHING) for end in (series.low, series.high)]
        text = (
            series.texts[i]
            if series.texts
            else lines.get(series.y[i], "" if series.form == "level" else number(series.x[i]))
        )
        yield TableCell(name), TableCell(series.label), TableCell(text or NOTHING), across, up, *ends


def _chosen(n: int) -> list[int]:
    if n <= MAX_ROUNDS:
        return list(range(n))
    return sorted({round(i * (n - 1) / (MAX_ROUNDS - 1)) for i in range(MAX_ROUNDS)})
