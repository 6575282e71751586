"""Figures drawn with matplotlib: as SVG that takes the colors of its page, or as files."""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError
from fedanon.io.atomic import atomic_write
from fedanon.report.charts import FAINT, INK, Panel, Series, Style, style, style_of, variables
from fedanon.report.document import Figure
from fedanon.report.labeling import label_points

PANEL, SMALL_PANEL, LARGE_PANEL = (3.8, 2.75), (2.1, 0.95), (7.6, 4.6)
#: panels per row in a file
ACROSS, SMALL_ACROSS = 3, 5
#: endings of a plot's file
KINDS = ("png", "svg", "pdf")
PLOTS = tuple(f".{kind}" for kind in KINDS)
#: longest label inside a figure
MAX_LABEL = 30
#: without dates and versions, so that the same figure gives the same bytes
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
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
    "text.parse_math": False,  # a label may contain a dollar sign
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "fedanon",  # the same figure gives the same bytes
}


def panel_svg(panel: Panel, name: str) -> str:
    """Draw one panel as an SVG element for a page; ``name`` keeps its ids unique."""
    svg = _drawn(lambda: _figure_of([panel], titled=False), "svg", transparent=True).decode()
    return _for_page(svg[svg.index("<svg") :], name)


def legend_svg(index: int, name: str) -> str:
    """Draw the line and marker of a series, for the legend of a page."""
    return _swatch_svg(index).replace("SWATCH", name)


@lru_cache(maxsize=64)
def _swatch_svg(index: int) -> str:
    svg = _drawn(lambda: _swatch(style(index)), "svg", transparent=True).decode()
    return _for_page(svg[svg.index("<svg") :], "SWATCH")


def figure_file(figure: Figure, kind: str, *, dpi: int = 150) -> bytes:
    """Draw a whole figure with titles and legend, as ``png`` or ``svg``, on white."""
    return _drawn(lambda: _figure_of(figure.panels, titled=True), kind, dpi=dpi)


def write_plot(panels: Sequence[Panel], path: Path, *, across: int = ACROSS) -> None:
    """Write panels with titles and legend to a file of their own; its ending decides the format."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in KINDS:
        raise ConfigError(f"The plot must be a file that ends in .{', .'.join(KINDS)}.")
    atomic_write(path, _drawn(lambda: _figure_of(panels, titled=True, most=across), kind, dpi=150))


def _drawn(make: Callable[[], Any], kind: str, **how: Any) -> bytes:
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        raise ConfigError("Figures need matplotlib: pip install 'fedanon[report]'.") from None
    buffer = io.BytesIO()
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a character its font lacks; pages have more fonts
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        make().savefig(buffer, format=kind, metadata=METADATA[kind], **how)
    return buffer.getvalue()


def _figure_of(panels: Sequence[Panel], *, titled: bool, most: int = ACROSS) -> Any:
    from matplotlib.figure import Figure as Canvas

    small = all(panel.small for panel in panels)
    across = min(len(panels), SMALL_ACROSS if small else most)
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
    if any(one.texts for panel in panels for one in panel.series):
        canvas.draw_without_rendering()  # sizes are known only now
        for panel, place in zip(panels, axes, strict=False):
            label_points(place, panel)
    if len(looks) > 1:
        handles = [_handle(look) for look in looks.values()]
        canvas.legend(handles, [_short(label) for label in looks], loc="outside lower center", ncols=columns)
    return canvas


def _width(panel: Panel) -> float:
    return (SMALL_PANEL if panel.small else LARGE_PANEL if panel.large else PANEL)[0]


def _height(panel: Panel) -> float:
    """Return the height of a panel; labeled lines need room for each."""
    if panel.small:
        return SMALL_PANEL[1]
    return 0.75 + 0.26 * len(panel.y_ticks) if panel.y_ticks else (LARGE_PANEL if panel.large else PANEL)[1]


def _looks(panels: Sequence[Panel]) -> dict[str, Style]:
    """The style of every label, with a marker and a line only where it is drawn with them."""
    found = {}
    for one in (one for panel in panels for one in panel.series):
        look = style(one.style) if one.x else style_of(one)
        marker = "" if one.form == "level" or _is_long(one) else look.marker
        found[one.label] = replace(look, marker=marker, dash="none" if one.form == "points" else look.dash)
    return found


def _is_long(one: Series) -> bool:
    """Whether a line has so many points that its markers would hide it."""
    return one.form == "band" and len(one.x) > 12


def _legend_columns(looks: dict[str, Style], width: float) -> int:
    letters = 7 + max((len(_short(label)) for label in looks), default=0)  # including the line before the label
    return max(1, min(len(looks), int(13.5 * width / letters)))


def _short(text: str, longest: int = MAX_LABEL) -> str:
    """Shorten a label to leave room for the data; the table behind the figure has it in full."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _draw_panel(axes: Any, panel: Panel, *, titled: bool) -> None:
    for one in panel.series:
        _draw_series(axes, one, across=panel.intervals_across)
    if panel.diagonal:
        ends = [v for s in panel.series for v in (*s.x, *s.y)]
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color=INK, linewidth=0.8, zorder=1)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if titled:
        axes.set_title(
            textwrap.fill(panel.title, 84 if panel.large else 42),
            loc="left",
            **({"fontsize": 7.5} if panel.small else {}),
        )
    longest = 2 * MAX_LABEL if panel.large else MAX_LABEL
    across = [x for one in panel.series if one.form != "level" for x in one.x]
    up = [y for one in panel.series for y in one.y]
    _scale(axes, "x", across if panel.x_log else [], panel.x_ticks, longest)
    _scale(axes, "y", up if panel.y_log else [], panel.y_ticks, longest)
    if panel.x_zero and not panel.x_log:
        axes.set_xlim(left=0)
    if panel.y_zero and not panel.y_log:
        axes.set_ylim(bottom=0)
    if panel.y_span:
        low, high = axes.get_ylim()
        room = max(panel.y_span - (high - low), 0) / 2
        axes.set_ylim(low - room, high + room)
    if panel.y_ticks:  # labeled lines, the first on top
        axes.set_ylim(len(panel.y_ticks) - 0.5, -0.5)
    if panel.small:
        _shrink(axes)


def _shrink(axes: Any) -> None:
    """Remove everything but the data and the labels of the x axis."""
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(axis="x", length=0, labelsize=7.5)


def _draw_series(axes: Any, one: Series, *, across: bool) -> None:
    look = style_of(one)
    if one.form == "level":
        axes.axhline(one.y[0], color=look.color, linestyle=look.dash, linewidth=1.4)
        axes.update_datalim([(0.0, one.y[0])], updatex=False)  # or it may lie on the edge of the panel
        axes.autoscale_view(scalex=False)
        if one.low:
            axes.axhspan(one.low[0], one.high[0], color=look.color, alpha=0.11, linewidth=0)
        return
    if one.form == "bars":
        axes.bar(one.x, one.y, color=look.color, width=0.8)
        return
    line = "none" if one.form == "points" else look.dash
    marker = "" if _is_long(one) else look.marker
    size = {"*": 8.5, "o": 5, "D": 4.6}.get(look.marker, 5.4)
    axes.plot(
        one.x, one.y, color=look.color, linestyle=line, linewidth=1.6, marker=marker, markersize=size, clip_on=False
    )
    if one.low and one.form == "band":
        axes.fill_between(one.x, one.low, one.high, color=look.color, alpha=0.11, linewidth=0)
    elif one.low:
        draw = axes.hlines if across else axes.vlines
        draw(one.y if across else one.x, one.low, one.high, color=look.color, linewidth=1.3, alpha=0.75)


def _scale(axes: Any, which: str, logged: Sequence[float], ticks: tuple[tuple[float, str], ...], longest: int) -> None:
    """Set up an axis: logarithmic if it has values for that, linear below the least of them if some are 0."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

    axis = getattr(axes, f"{which}axis")
    if logged:
        least = min((value for value in logged if value > 0), default=1.0)
        scale = {"value": "log"} if min(logged) > 0 else {"value": "symlog", "linthresh": least}
        getattr(axes, f"set_{which}scale")(**scale)
        if min(logged) == 0:
            getattr(axes, f"set_{which}lim")(-0.3 * least)
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    elif not ticks:
        axis.set_major_locator(MaxNLocator(5))
    if ticks:
        axis.set_ticks([place for place, _ in ticks], labels=[_short(text, longest) for _, text in ticks])
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
    """Drop what a page does not need; colors and fonts become the page's, ids become unique."""
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', svg, count=1)
    svg = svg.replace("xlink:href", "href")
    used = set(re.findall(r"url\(#([\w.-]+)\)", svg)) | set(re.findall(r'href="#([\w.-]+)"', svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(url\(#|href="#)([\w.-]+)', rf"\g<1>{name}-\2", svg)
    svg = re.sub(r' style="([^"]*)"', lambda m: f' style="{_page_style(m[1])}"', svg)
    # only coordinates, never texts, are shortened
    return re.sub(r' (d|x|y|transform)="[^"]*"', lambda m: re.sub(r"(\d\.\d{2})\d+", r"\1", m[0]), svg)


def _page_style(text: str) -> str:
    text = text.replace("'DejaVu Sans'", "var(--sans)")
    for color, variable in variables().items():
        text = text.replace(color, variable)
    return text
