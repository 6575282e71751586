"""The numbers behind a figure, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedanon.report.charts import Panel, Series
from fedanon.report.document import Cell, Column, Table
from fedanon.report.numbers import NOTHING, cell, number

#: rounds of a curve that its table shows
MAX_ROUNDS = 8


def table_of(title: str, panels: Sequence[Panel]) -> Table:
    """One row a point; of long curves, some rounds with the last among them."""
    columns = (
        Column("Panel"),
        Column("Series"),
        Column("Point"),
        *(Column(t, True) for t in ("Across", "Up", "From", "To")),
    )
    rows = tuple(row for panel in panels for series in panel.series for row in _rows(panel, series))
    return Table(f"{title}: the numbers (across and up as on the axes)", columns, rows)


def _rows(panel: Panel, series: Series) -> Iterator[tuple[Cell, ...]]:
    lines = dict(panel.y_ticks)
    name = panel.title or " ".join(panel.y_label.split())
    for i in _chosen(len(series.y)):
        # a level has no place across; lines of words have none up
        across = Cell(NOTHING) if series.form == "level" else cell(series.x[i])
        up = Cell(NOTHING) if series.y[i] in lines else cell(series.y[i])
        ends = [cell(end[i]) if end else Cell(NOTHING) for end in (series.low, series.high)]
        text = (
            series.texts[i]
            if series.texts
            else lines.get(series.y[i], "" if series.form == "level" else number(series.x[i]))
        )
        yield Cell(name), Cell(series.label), Cell(text or NOTHING), across, up, *ends


def _chosen(n: int) -> list[int]:
    if n <= MAX_ROUNDS:
        return list(range(n))
    return sorted({round(i * (n - 1) / (MAX_ROUNDS - 1)) for i in range(MAX_ROUNDS)})
