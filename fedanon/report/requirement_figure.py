"""What privacy models beyond k cost: a figure for results at several requirements."""

from __future__ import annotations

import pandas as pd

from fedanon.report.charts import Panel, Series
from fedanon.report.document import Figure
from fedanon.report.figure_parts import Styles, floats, make_figure, panel_title, remark
from fedanon.report.places import LOSS, first_of, panels_of, several

REQUIRE = "require"
K_ALONE = "k alone"


def loss_and_requirement(name: str, frame: pd.DataFrame, styles: Styles) -> Figure | None:
    """Loss across the requirements in the order of the file, one panel a place and k; None where there is only one."""
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
            panels.append(_panel(panel_title(loss, where), at_k.loc[part.index], order, styles))
    caption = "One line a method; means over seeds. Requirements stand in the order of the experiment."
    return make_figure(f"{name}-requirements", "What every requirement costs", caption, panels)


def _panel(title: str, frame: pd.DataFrame, order: dict[str, float], styles: Styles) -> Panel:
    means = frame.groupby(["series", "place"], sort=False)["value"].mean().reset_index().sort_values("place")
    return Panel(
        title=title,
        x_label="required beyond k",
        y_label=remark(cut=False),
        series=tuple(
            Series(label=str(series), style=styles[str(series)], x=floats(part["place"]), y=floats(part["value"]))
            for series, part in means.groupby("series", sort=False)
        ),
        x_ticks=tuple((place, _short(text)) for text, place in order.items()),
        y_zero=True,
    )


def _short(requirement: str) -> str:
    """A requirement without its columns: they are the same throughout a grid."""
    return ", ".join(item.split(":")[0] for item in requirement.split(",")) if requirement else K_ALONE
