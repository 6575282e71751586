"""What the figures share: titles, axes and ticks."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fedanon.report.charts import Panel
from fedanon.report.document import Figure
from fedanon.report.figure_table import table_of
from fedanon.report.words import meaning

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
