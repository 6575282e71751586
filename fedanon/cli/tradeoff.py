"""The trade-off plot: information loss against re-identification risk, one line a method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedanon.cli.figures import new_figure, save_figure

MARKERS = "osD^vP*Xh<>p"


def draw_tradeoff(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw NCP against the share of linked records; points are labelled with k."""
    figure, panels = new_figure()
    axes = panels[0][0]
    for i, method in enumerate(dict.fromkeys(result["method"] for result in results)):
        points = [r for r in results if r["method"] == method]
        _draw_method(axes, method, points, MARKERS[i % len(MARKERS)])
    axes.set_yscale("symlog", linthresh=0.1)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("information loss, NCP from original values (%)")
    axes.set_ylabel("records linked by an attacker (%)")
    axes.set_title("Loss against risk; numbers are k. Towards the lower left is better.")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    save_figure(figure, path)


def _draw_method(axes: Any, method: str, points: Sequence[dict[str, Any]], marker: str) -> None:
    x, y = [100 * r["ncp"] for r in points], [100 * r["linkage_expected_share"] for r in points]
    promised = points[0]["claim"] is not None
    label, style = (method, "-") if promised else (f"{method} (promises nothing)", ":")
    (line,) = axes.plot(x, y, marker=marker, label=label, alpha=0.85, linestyle=style)
    look = {"textcoords": "offset points", "xytext": (5, 3), "fontsize": 7, "color": line.get_color()}
    for r, at in zip(points, zip(x, y, strict=True), strict=True):
        axes.annotate(str(r["k"] or ""), at, **look)
