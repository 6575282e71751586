"""Tables of a sweep: what is recommended and why, and every point ranked."""

from __future__ import annotations

import pandas as pd

from fedanon.harness.pareto import LIMIT, choose, ranks
from fedanon.report.document import Cell, Column, Table
from fedanon.report.numbers import NOTHING, cell, number
from fedanon.report.words import meaning

_PLACE = {"method": "Method", "variant": "Variant", "value": "Parameter"}
_NOT_MEASURES = ("label", "family", *_PLACE)


def recommended_table(points: pd.DataFrame, risk: str, loss: str) -> Table:
    """One row a goal."""
    titles = [*_PLACE.values(), meaning(risk).title, meaning(loss).title]
    columns = (Column("Goal"), *(Column(t, t not in _PLACE.values()) for t in titles), Column("Why"))
    rows = [
        (Cell(c.goal), *(_text(points.iloc[c.index][name]) for name in _PLACE), cell(c.risk), cell(c.loss), Cell(c.why))
        for c in choose(points[risk], points[loss])
    ]
    return Table(f"Recommended, by {meaning(risk).title} and {meaning(loss).title}", columns, tuple(rows))


def recommended_sentence(grid: str, points: pd.DataFrame, risk: str, loss: str) -> str:
    """The three choices in one sentence."""
    chosen = [
        f"{c.goal} {_name(points.iloc[c.index])} (risk {number(round(c.risk, 4))}, loss {number(round(c.loss, 4))})"
        for c in choose(points[risk], points[loss])
    ]
    return f"{grid}, {meaning(risk).title} at most {LIMIT:g}: {'; '.join(chosen)}."


def ranked_table(caption: str, points: pd.DataFrame, risk: str, loss: str) -> Table:
    """All points by the front they lie on, then by risk; rank 1 is beaten by no other in risk and loss at once."""
    ordered = points.assign(rank=ranks(points[risk], points[loss])).sort_values(["rank", risk, loss], kind="stable")
    measures = [name for name in points.columns if name not in _NOT_MEASURES]
    measures = [risk, loss, *(name for name in measures if name not in (risk, loss))]
    columns = [Column("Rank", True), *(Column(title) for title in _PLACE.values())]
    columns += [Column(meaning(name).title, True, name) for name in measures]
    rows = [
        (cell(row["rank"]), *(_text(row[name]) for name in _PLACE), *(cell(row[name]) for name in measures))
        for row in ordered.to_dict("records")
    ]
    return Table(caption, tuple(columns), tuple(rows))


def _text(value: str) -> Cell:
    return Cell(value or NOTHING)


def _name(point: pd.Series) -> str:
    parts = [point["method"], point["value"], "" if point["variant"] == "plain" else point["variant"]]
    return ", ".join(filter(None, parts))
