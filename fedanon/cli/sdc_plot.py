"""The plot of a comparison: risk against loss, one line a method and variant, the front, and what is recommended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedanon.cli.figures import new_figure, save_figure

if TYPE_CHECKING:
    import pandas as pd

MARKERS = "osD^vP*Xh<>p"
LINES = {"plain": "-", "reverse mapped": "--", "restricted": ":", "restricted, reverse mapped": "-."}


def draw_comparison(rows: pd.DataFrame, risk: str, loss: str, path: Path, *, limit: float | None = None) -> None:
    """Draw all points; with ``limit`` also the choices made within it."""
    from fedanon.metrics import METRICS

    figure, panels = new_figure(size=(10, 6.2))
    axes = panels[0][0]
    for i, (method, part) in enumerate(rows.groupby("method", sort=False)):
        _draw_method(axes, str(method), part, risk, loss, i)
    _name_variants(axes, list(dict.fromkeys(rows["variant"])))
    _draw_front(axes, rows, risk, loss)
    if limit is not None:
        _draw_choices(axes, rows, risk, loss, limit)
    axes.set_xlabel(f"loss: {METRICS[loss].title}")
    axes.set_ylabel(f"risk: {METRICS[risk].title}")
    positive = rows[loss][rows[loss] > 0]
    if len(positive) and positive.max() / positive.min() > 30:
        axes.set_xscale("symlog", linthresh=float(positive.min()))
    axes.set_title("Risk against loss; towards the lower left is better")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    save_figure(figure, path)


def _draw_method(axes: Any, method: str, part: pd.DataFrame, risk: str, loss: str, number: int) -> None:
    look = {"color": f"C{number % 10}", "marker": MARKERS[number % len(MARKERS)], "markersize": 5, "linewidth": 1}
    for i, (variant, points) in enumerate(part.groupby("variant", sort=False)):
        label = method if i == 0 else None  # the variants are told once for all methods
        axes.plot(points[loss], points[risk], label=label, linestyle=LINES[str(variant)], alpha=0.8, **look)


def _name_variants(axes: Any, variants: list[str]) -> None:
    for variant in variants if len(variants) > 1 else []:
        axes.plot([], [], color="0.3", linewidth=1, linestyle=LINES[variant], label=variant)


def _draw_front(axes: Any, rows: pd.DataFrame, risk: str, loss: str) -> None:
    from fedanon.harness.pareto import pareto_front

    front = rows[pareto_front(rows[risk], rows[loss])].sort_values([risk, loss])
    axes.plot(front[loss], front[risk], color="0.1", linewidth=5, alpha=0.15, label="Pareto front", zorder=1)


def _draw_choices(axes: Any, rows: pd.DataFrame, risk: str, loss: str, limit: float) -> None:
    from fedanon.harness.masking_comparison import described
    from fedanon.harness.pareto import choose

    axes.axhline(limit, color="0.4", linewidth=0.8, linestyle=":")
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.5", "alpha": 0.85}
    for number, choice in enumerate(choose(rows[risk], rows[loss], limit=limit)):
        text = f"{choice.goal}: {described(rows.iloc[choice.index].to_dict())}"
        axes.scatter([choice.loss], [choice.risk], s=130, facecolors="none", edgecolors="0.1", zorder=5)
        axes.annotate(
            text,
            (choice.loss, choice.risk),
            xytext=(14, 16 + 14 * number),
            textcoords="offset points",
            fontsize=8,
            bbox=box,
            arrowprops={"arrowstyle": "-", "color": "0.4"},
        )
