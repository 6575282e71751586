"""The plot of the tour: AUC on raw rows against k, one panel a data set and model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedanon.cli.figures import new_figure, save_figure


def draw_tour(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw one line a method; the dashed line is the run without anonymisation."""
    datasets = list(dict.fromkeys(result["dataset"] for result in results))
    models = list(dict.fromkeys(result["model"] for result in results))
    figure, panels = new_figure(len(datasets), len(models), size=(5.2 * len(models), 3.6 * len(datasets)))
    for row, dataset in enumerate(datasets):
        for column, model in enumerate(models):
            chosen = [r for r in results if r["dataset"] == dataset and r["model"] == model]
            _draw_panel(panels[row][column], chosen, f"{dataset}, {model}")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    save_figure(figure, path)


def _draw_panel(axes: Any, results: Sequence[dict[str, Any]], title: str) -> None:
    ks = sorted({result["k"] for result in results if result["k"] is not None})
    for style, result in zip(("--", ":"), [r for r in results if r["k"] is None], strict=False):
        axes.axhline(result["auc_pooled"], color="0.3", linestyle=style, label=result["method"])
    for method in dict.fromkeys(result["method"] for result in results if result["k"] is not None):
        line = {result["k"]: result["auc_pooled"] for result in results if result["method"] == method}
        axes.plot(range(len(ks)), [line[k] for k in ks], marker="o", label=method)
    axes.set_xticks(range(len(ks)), [str(k) for k in ks])
    axes.set_title(title)
    axes.set_xlabel("k")
    axes.set_ylabel("AUC on raw test rows")
    axes.grid(alpha=0.3)
