"""Colours, markers and dashes: told apart by colour-blind readers, in light, in dark and on paper.

The hues are those of Okabe & Ito (2008), darkened for white paper and lightened for dark screens until every one has a
contrast of at least 3 to 1; a series is also told by its marker and its dash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedanon.report.charts import BEYOND, MAJORITY, REFERENCE, WITHIN

#: of text and of lines behind the data, on white; a page replaces them by its own
INK, FAINT = "#1c2530", "#d9dfe6"
LIGHT = ("#0072b2", "#c44e00", "#00805c", "#a8447f", "#957000", "#2b86bd", "#6a51c4", "#6b7280")
DARK = ("#4ba8e8", "#ff9550", "#2fc79c", "#e89ac8", "#e5b93c", "#9bd7ff", "#b3a2ff", "#aab2bd")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
DASHES = ("solid", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))


@dataclass(frozen=True)
class Style:
    """Looks of a series, as matplotlib takes them."""

    color: str
    marker: str
    dash: Any


def style(index: int) -> Style:
    """The looks of series ``index``; colours repeat after eight, the marker then differs."""
    if index == REFERENCE:
        return Style(INK, "*", (0, (6, 2)))
    if index == MAJORITY:
        return Style(LIGHT[-1], "_", (0, (1, 1.5)))
    if index == WITHIN:
        return Style(LIGHT[0], "o", "none")
    if index == BEYOND:
        return Style(LIGHT[1], "X", "none")
    return Style(LIGHT[index % len(LIGHT)], MARKERS[index % len(MARKERS)], DASHES[index // len(LIGHT) % len(DASHES)])


def variables() -> dict[str, str]:
    """What stands for every colour on a page: ``#0072b2`` becomes ``var(--s0)``."""
    return {INK: "currentColor", FAINT: "var(--faint)"} | {color: f"var(--s{i})" for i, color in enumerate(LIGHT)}
