"""Labels of points, placed so that none covers another or a marker."""

from __future__ import annotations

from itertools import pairwise, product, zip_longest
from typing import Any

import numpy as np

from fedanon.report.charts import Panel, style

#: half the side of a marker, the width of a letter, its font size and the height of a line, in points
MARKER, LETTER, SIZE, LINE = 3.0, 5.3, 8.0, 10.0
#: from the point to the label: the nearest free place is taken
DISTANCES = (4.0, 9.0, 15.0, 22.0)
DIRECTIONS = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))

Box = tuple[float, float, float, float]


def label_points(axes: Any, panel: Panel) -> None:
    """Write the texts of a panel's points; one for which there is no room is left out."""
    scale = 72 / axes.figure.dpi
    points = [
        (at, text, style(one.style).color)
        for one in panel.series
        if one.form != "level"
        for at, text in zip_longest(zip(one.x, one.y, strict=True), one.texts[: len(one.x)], fillvalue="")
    ]
    places = scale * axes.transData.transform([at for at, _, _ in points])
    taken: list[Box] = [(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for x, y in places]
    lines = _line_boxes(axes, panel, scale)
    frame = axes.get_window_extent()
    edges = (scale * frame.x0, scale * frame.y0, scale * frame.x1, scale * frame.y1)
    for (x, y), (at, text, color) in zip(places, points, strict=True):
        width = len(text) * LETTER
        place = text and (_free_place(x, y, width, [*taken, *lines], edges) or _free_place(x, y, width, taken, edges))
        if not place:
            continue
        taken.append(place)
        shift = (place[0] - x, place[1] - y + 2)
        axes.annotate(text, at, xytext=shift, textcoords="offset points", fontsize=SIZE, color=color)


def _line_boxes(axes: Any, panel: Panel, scale: float) -> list[Box]:
    """Small boxes along the lines, which a label covers only where there is no other room."""
    boxes: list[Box] = []
    for one in panel.series:
        if one.form == "line" and len(one.x) > 1:
            corners = scale * axes.transData.transform(list(zip(one.x, one.y, strict=True)))
            for (x, y), (end_x, end_y) in pairwise(corners):
                steps = max(int(np.hypot(end_x - x, end_y - y) / LETTER), 1)
                along = zip(np.linspace(x, end_x, steps), np.linspace(y, end_y, steps), strict=True)
                boxes += [(a - 0.5, b - 0.5, a + 0.5, b + 0.5) for a, b in along]
    return boxes


def _free_place(x: float, y: float, width: float, taken: list[Box], edges: Box) -> Box | None:
    """The box nearest to a point that touches no other and stays within the axes."""
    for distance, (right, up) in product(DISTANCES, DIRECTIONS):
        left = x + right * distance - width * (1 - right) / 2
        bottom = y + up * distance - LINE * (1 - up) / 2
        box = (left, bottom, left + width, bottom + LINE)
        inside = edges[0] <= box[0] and edges[1] <= box[1] and box[2] <= edges[2] and box[3] <= edges[3]
        if inside and not any(_overlap(box, other) for other in taken):
            return box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
