"""The plot of a suite of attacks: how often each succeeds, with its interval, beside the guess."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedanon.cli.figures import new_figure, save_figure

if TYPE_CHECKING:
    from fedanon.attacks.base import AttackResult

#: share of the axis that the number of a rate takes, with room
NUMBER_WIDTH = 0.1


def draw_attacks(results: Sequence[AttackResult], title: str, path: Path) -> None:
    """One line an attack, the highest gain over the guess on top."""
    ordered = sorted(results, key=lambda one: one.rate - one.baseline, reverse=True)
    figure, panels = new_figure(size=(8.5, 1.5 + 0.34 * len(ordered)))
    axes = panels[0][0]
    for place, one in enumerate(ordered):
        _draw(axes, place, one)
    _frame(axes, [one.title for one in ordered], title)
    figure.legend(*_legend(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    save_figure(figure, path)


def _draw(axes: Any, place: int, one: AttackResult) -> None:
    from fedanon.report.charts import BEYOND, WITHIN
    from fedanon.report.style import INK, style

    look = style(BEYOND if one.low > one.baseline else WITHIN)
    axes.plot([one.low, one.high], [place, place], color=look.color, linewidth=2.2, alpha=0.6, solid_capstyle="butt")
    axes.plot(one.rate, place, color=look.color, marker=look.marker, markersize=6, linestyle="none", clip_on=False)
    axes.plot(
        one.baseline, place, color=INK, marker="|", markersize=15, markeredgewidth=2, linestyle="none", clip_on=False
    )
    at, left = _number_place(one)
    axes.annotate(
        f"{one.rate:.1%}",
        (at, place),
        xytext=(-8 if left else 8, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=8.5,
        color=INK,
    )


def _number_place(one: AttackResult) -> tuple[float, bool]:
    """Where the number of a rate stands, and whether to the left of it: beside the interval, not on the baseline."""
    in_the_way = one.high <= one.baseline < one.high + NUMBER_WIDTH
    right = max(one.high, one.baseline) if in_the_way else one.high
    if right + NUMBER_WIDTH <= 1:
        return right, False
    in_the_way = one.low - NUMBER_WIDTH < one.baseline <= one.low
    return min(one.low, one.baseline) if in_the_way else one.low, True


def _frame(axes: Any, names: Sequence[str], title: str) -> None:
    from fedanon.report.style import FAINT, INK

    axes.set_yticks(range(len(names)), labels=names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("share of the tries that succeed")
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold", color=INK)
    axes.grid(axis="x", color=FAINT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _legend() -> tuple[list[Any], list[str]]:
    from matplotlib.lines import Line2D

    from fedanon.report.charts import BEYOND, WITHIN
    from fedanon.report.style import INK, style

    looks = [style(BEYOND), style(WITHIN)]
    points = [Line2D([], [], color=look.color, marker=look.marker, linewidth=2.2) for look in looks]
    guess = Line2D([], [], color=INK, marker="|", markersize=13, markeredgewidth=2, linestyle="none")
    words = ["attack, 95 % interval above the baseline", "attack, not above it", "baseline: without the release"]
    return [*points, guess], words
