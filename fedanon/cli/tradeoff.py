"""The trade-off plot: information loss against re-identification risk, one line a method."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedanon.data.atomic import atomic_write
from fedanon.errors import ConfigError


def draw_tradeoff(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw NCP against the share of linked records; points are labelled with k."""
    figure = _figure(results)
    kind = path.suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise ConfigError("The plot must be a .png, .svg or .pdf file.")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150, bbox_inches="tight")
    atomic_write(path, buffer.getvalue())


def _figure(results: Sequence[dict[str, Any]]) -> Any:
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise ConfigError("Plots need matplotlib: pip install 'fedanon[plot]'.") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5.5), layout="constrained")
    markers = "osD^vP*Xh<>p"
    for i, method in enumerate(dict.fromkeys(result["method"] for result in results)):
        points = [r for r in results if r["method"] == method]
        x, y = [100 * r["ncp"] for r in points], [100 * r["linkage_expected_share"] for r in points]
        promised = points[0]["claim"] is not None
        label, style = (method, "-") if promised else (f"{method} (promises nothing)", ":")
        (line,) = axes.plot(x, y, marker=markers[i % len(markers)], label=label, alpha=0.85, linestyle=style)
        look: dict[str, Any] = {
            "textcoords": "offset points",
            "xytext": (5, 3),
            "fontsize": 7,
            "color": line.get_color(),
        }
        for r, at in zip(points, zip(x, y, strict=True), strict=True):
            axes.annotate(str(r["k"] or ""), at, **look)
    axes.set_yscale("symlog", linthresh=0.1)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("information loss, NCP from original values (%)")
    axes.set_ylabel("records linked by an attacker (%)")
    axes.set_title("Loss against risk; numbers are k. Towards the lower left is better.")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    plt.close(figure)
    return figure
