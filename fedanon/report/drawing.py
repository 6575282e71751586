"""Figures drawn with matplotlib: as SVG that takes the colours of its page, or as files."""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from fedanon.errors import ConfigError
from fedanon.report.charts import Panel, Series
from fedanon.report.document import Figure
from fedanon.report.style import FAINT, INK, Style, style, variables

PANEL, SMALL_PANEL = (3.8, 2.75), (2.1, 0.95)
#: panels beside each other in a file
ACROSS, SMALL_ACROSS = 3, 5
#: letters of a label inside a figure
MAX_LABEL = 30
SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "text.parse_math": False,  # a label may hold a dollar
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "fedanon",  # the same figure gives the same bytes
}


def panel_svg(panel: Panel, name: str) -> str:
    """One panel as an SVG element for a page; ``name`` keeps its ids apart from others'."""
    svg = _drawn(lambda: _figure_of([panel], titled=False), "svg", transparent=True).decode()
    return _for_page(svg[svg.index("<svg") :], name)


def legend_svg(index: int, name: str) -> str:
    """The line and marker of a series, for the legend of a page."""
    return _swatch_svg(index).replace("SWATCH", name)


@lru_cache(maxsize=64)
def _swatch_svg(index: int) -> str:
    svg = _drawn(lambda: _swatch(style(index)), "svg", transparent=True).decode()
    return _for_page(svg[svg.index("<svg") :], "SWATCH")


def figure_file(figure: Figure, kind: str, *, dpi: int = 150) -> bytes:
    """A whole figure with titles and legend, as ``png`` or ``svg``, on white."""
    return _drawn(lambda: _figure_of(figure.panels, titled=True), kind, dpi=dpi)


def _drawn(make: Callable[[], Any], kind: str, **how: Any) -> bytes:
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        raise ConfigError("Figures need matplotlib: pip install 'fedanon[report]'.") from None
    buffer = io.BytesIO()
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a sign its font lacks; pages have more fonts
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        make().savefig(buffer, format=kind, metadata=metadata, **how)
    return buffer.getvalue()


def _figure_of(panels: Sequence[Panel], *, titled: bool) -> Any:
    from matplotlib.figure import Figure as Canvas

    small = all(panel.small for panel in panels)
    across = min(len(panels), SMALL_ACROSS if small else ACROSS)
    down = math.ceil(len(panels) / across)
    title = 0.2 if small and titled else 0.0
    size = _width(panels[0]) * across, (max(_height(panel) for panel in panels) + title) * down
    looks = _looks(panels) if titled else {}
    columns = _legend_columns(looks, size[0])
    canvas = Canvas(
        figsize=(size[0], size[1] + 0.3 * titled + 0.2 * math.ceil(len(looks) / columns)), layout="constrained"
    )
    axes = list(canvas.subplots(down, across, squeeze=False).flat)
    for panel, place in zip(panels, axes, strict=False):
        _draw_panel(place, panel, titled=titled)
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    if len(looks) > 1:
        handles = [_handle(look) for look in looks.values()]
        canvas.legend(handles, [_short(label) for label in looks], loc="outside lower center", ncols=columns)
    return canvas


def _width(panel: Panel) -> float:
    return SMALL_PANEL[0] if panel.small else PANEL[0]


def _height(panel: Panel) -> float:
    """Words in lines need room for each."""
    if panel.small:
        return SMALL_PANEL[1]
    return 0.75 + 0.26 * len(panel.y_ticks) if panel.y_ticks else PANEL[1]


def _looks(panels: Sequence[Panel]) -> dict[str, Style]:
    return {one.label: style(one.style) for panel in panels for one in panel.series}


def _legend_columns(looks: dict[str, Style], width: float) -> int:
    letters = 7 + max((len(_short(label)) for label in looks), default=0)  # with the line before the word
    return max(1, min(len(looks), int(13.5 * width / letters)))


def _short(text: str) -> str:
    """A label that leaves room for the data; it stands in full in the table behind the figure."""
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"


def _draw_panel(axes: Any, panel: Panel, *, titled: bool) -> None:
    for one in panel.series:
        _draw_series(axes, one, across=panel.intervals_across)
    if panel.diagonal:
        ends = [v for s in panel.series for v in (*s.x, *s.y)]
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color=INK, linewidth=0.8, zorder=1)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if titled:
        axes.set_title(textwrap.fill(panel.title, 42), loc="left", **({"fontsize": 7.5} if panel.small else {}))
    _scale(axes, "x", panel.x_log, panel.x_ticks)
    _scale(axes, "y", panel.y_log, panel.y_ticks)
    if panel.x_zero and not panel.x_log:
        axes.set_xlim(left=0)
    if panel.y_zero and not panel.y_log:
        axes.set_ylim(bottom=0)
    if panel.y_ticks:  # words in lines, the first on top
        axes.set_ylim(len(panel.y_ticks) - 0.5, -0.5)
    if panel.small:
        _shrink(axes)


def _shrink(axes: Any) -> None:
    """Leave the marks and the words of the x axis."""
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(axis="x", length=0, labelsize=7.5)


def _draw_series(axes: Any, one: Series, *, across: bool) -> None:
    look = style(one.style)
    if one.form == "level":
        axes.axhline(one.y[0], color=look.color, linestyle=look.dash, linewidth=1.4)
        return
    if one.form == "bars":
        axes.bar(one.x, one.y, color=look.color, width=0.8)
        return
    line = "none" if one.form == "points" else look.dash
    marker = "" if one.form == "band" and len(one.x) > 12 else look.marker
    size = {"*": 8.5, "o": 5, "D": 4.6}.get(look.marker, 5.4)
    axes.plot(
        one.x, one.y, color=look.color, linestyle=line, linewidth=1.6, marker=marker, markersize=size, clip_on=False
    )
    if one.low and one.form == "band":
        axes.fill_between(one.x, one.low, one.high, color=look.color, alpha=0.11, linewidth=0)
    elif one.low:
        draw = axes.hlines if across else axes.vlines
        draw(one.y if across else one.x, one.low, one.high, color=look.color, linewidth=1.3, alpha=0.75)
    for text, x, y in zip(one.texts, one.x, one.y, strict=False):
        axes.annotate(text, (x, y), xytext=(4, 3), textcoords="offset points", fontsize=8, color=look.color)


def _scale(axes: Any, which: str, log: bool, ticks: tuple[tuple[float, str], ...]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

    axis = getattr(axes, f"{which}axis")
    if log:
        axes.set(**{f"{which}scale": "log"})
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    elif not ticks:
        axis.set_major_locator(MaxNLocator(5))
    if ticks:
        axis.set_ticks([place for place, _ in ticks], labels=[_short(text) for _, text in ticks])
        axis.set_minor_locator(NullLocator())


def _handle(look: Style) -> Any:
    from matplotlib.lines import Line2D

    return Line2D(
        [0.04, 0.5, 0.96],
        [0.5, 0.5, 0.5],
        color=look.color,
        linestyle=look.dash,
        linewidth=1.6,
        marker=look.marker,
        markevery=[1],
        markersize=6,
    )


def _swatch(look: Style) -> Any:
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(0.46, 0.16))
    handle = _handle(look)
    handle.set_transform(canvas.transFigure)
    canvas.add_artist(handle)
    return canvas


def _for_page(svg: str, name: str) -> str:
    """Without what a page does not need: colours and fonts become the page's, ids its own."""
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', svg, count=1)
    svg = svg.replace("xlink:href", "href")
    used = set(re.findall(r"url\(#([\w.-]+)\)", svg)) | set(re.findall(r'href="#([\w.-]+)"', svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(url\(#|href="#)([\w.-]+)', rf"\g<1>{name}-\2", svg)
    svg = re.sub(r' style="([^"]*)"', lambda m: f' style="{_page_style(m[1])}"', svg)
    # only places, never texts, are shortened
    return re.sub(r' (d|x|y|transform)="[^"]*"', lambda m: re.sub(r"(\d\.\d{2})\d+", r"\1", m[0]), svg)


def _page_style(text: str) -> str:
    text = text.replace("'DejaVu Sans'", "var(--sans)")
    for color, variable in variables().items():
        text = text.replace(color, variable)
    return text
