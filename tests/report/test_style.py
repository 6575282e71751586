"""Colors can be read: contrasts of WCAG 2.1, 3 to 1 for marks and 4.5 to 1 for text."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from fedanon.report.charts import DARK, LIGHT, style

CSS = files("fedanon.report").joinpath("page.css").read_text(encoding="utf-8")


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themes() -> list[dict[str, str]]:
    """The colors of the three rules: light, dark by the system, dark by hand."""
    return [
        dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in CSS.split("color-scheme:")[1:] if "--page" in part
    ]


def test_dark_is_the_same_however_it_is_chosen() -> None:
    light, by_system, by_hand = themes()
    assert by_system == by_hand
    assert set(light) == set(by_hand)


@pytest.mark.parametrize(("theme", "series"), [(0, LIGHT), (1, DARK)])
def test_contrasts(theme: int, series: tuple[str, ...]) -> None:
    colors = themes()[theme]
    for color in series:
        assert contrast(color, colors["card"]) >= 3, color
    for name in ("ink", "soft", "accent", "good", "bad"):
        for back in ("page", "card"):
            assert contrast(colors[name], colors[back]) >= 4.5, (name, back)
    assert contrast(colors["accent"], colors["accent-soft"]) >= 4.5
    assert contrast(colors["bad"], colors["warn-soft"]) >= 4.5
    for name in ("caution", "alarm"):
        for text in (name, "ink"):
            assert contrast(colors[text], colors[f"{name}-soft"]) >= 4.5, (text, name)


def test_forty_series_all_look_different() -> None:
    assert len({(style(i).color, style(i).marker, str(style(i).dash)) for i in range(40)}) == 40
