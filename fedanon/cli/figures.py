"""Figures: made without a screen, written atomically."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fedanon.data.atomic import atomic_write
from fedanon.errors import ConfigError

KINDS = ("png", "svg", "pdf")


def new_figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float] = (9, 5.5)) -> tuple[Any, Any]:
    """A figure and its axes as a list of rows."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise ConfigError("Plots need matplotlib: pip install 'fedanon[plot]'.") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    plt.close(figure)  # it is drawn from here, never shown
    return figure, axes


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure; the file's ending says how."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in KINDS:
        raise ConfigError(f"The plot must be a file that ends in .{', .'.join(KINDS)}.")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150, bbox_inches="tight")
    atomic_write(path, buffer.getvalue())
