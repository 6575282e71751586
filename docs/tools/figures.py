"""The figures of the documentation that are drawn by our own methods: `python docs/tools/figures.py`.

The same code gives the same bytes, so that a figure changes only where what it shows does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch, Rectangle

from fedanon import Schema, Table
from fedanon.anonymizers import Gfkmc
from fedanon.anonymizers.gfkmc.das import separatrices

FOLDER = Path(__file__).parents[1] / "figures"
INK, SOFT, COLORS = "#263238", "#90a4ae", ("#00796b", "#c2185b", "#3f51b5", "#ef6c00", "#6d4c41")
#: table 4.1 of the thesis: nine people
PEOPLE = pd.DataFrame(
    {
        "age": [21, 24, 25, 30, 34, 33, 38, 41, 39],
        "height": [160, 154, 158, 170, 169, 176, 183, 190, 180],
        "weight": [50.55, 60.60, 48.80, 76.80, 54.70, 67.90, 79.00, 80.60, 83.10],
    }
)


def as_table(frame: pd.DataFrame) -> Table:
    """People as a table whose columns are all quasi-identifiers."""
    number = {"role": "quasi_identifying", "type": "numeric"}
    ranges = {"age": [0, 100], "height": [100, 220], "weight": [30, 200]}
    return Table.from_frame(frame, Schema.from_dict({"attributes": {n: {**number, "range": ranges[n]} for n in frame}}))


def draw_das() -> Any:
    """Every column of the example, cut at its separatrices, with the means that are published."""
    figure, axes = plt.subplots(3, 1, figsize=(7.2, 4.2), layout="constrained")
    for axis, name in zip(axes, PEOPLE, strict=True):
        values = PEOPLE[name].to_numpy(dtype=float)
        groups = separatrices(values, 3)
        labels = groups.group_of(values)
        axis.axhline(0, color=SOFT, lw=1, zorder=0)
        for label, mean in enumerate(groups.means):
            inside = values[labels == label]
            axis.scatter(inside, np.zeros(len(inside)), s=46, color=COLORS[label], zorder=2)
            axis.scatter([mean], [0], marker="D", s=110, facecolor="none", edgecolor=COLORS[label], lw=1.6, zorder=3)
            axis.annotate(
                f"{mean:.4g}", (mean, 0), (0, -19), textcoords="offset points", ha="center", color=COLORS[label]
            )
        ordered = np.sort(values)
        for cut in np.flatnonzero(np.diff(np.sort(labels))):
            axis.axvline((ordered[cut] + ordered[cut + 1]) / 2, color=INK, lw=1, ls=":")
        for person, value in enumerate(values):
            axis.annotate(
                str(person), (value, 0), (0, 8), textcoords="offset points", ha="center", fontsize=8, color=INK
            )
        axis.set(yticks=[], ylim=(-1, 1), ylabel=name)
        axis.spines[["left", "top", "right"]].set_visible(False)
    return figure


def draw_gfkmc() -> Any:
    """Three steps: the people, the groups of equal rows after DAS, and the published classes."""
    people = PEOPLE[["age", "weight"]]
    release = Gfkmc(k=3, publish="lca").anonymize(as_table(people), rng=0)
    generalized = people.copy().astype(float)
    for name in people:
        groups = separatrices(people[name].to_numpy(dtype=float))
        generalized[name] = groups.means[groups.group_of(people[name].to_numpy(dtype=float))]
    equal = generalized.groupby(list(generalized), sort=False).ngroup().to_numpy()
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.3), layout="constrained", sharex=True, sharey=True)
    titles = (
        "1  nine people",
        f"2  after DAS: {equal.max() + 1} groups of equal rows",
        "3  classes of at least 3, as published",
    )
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=9, loc="left")
        axis.set_xlabel("age")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("weight")
    axes[0].scatter(PEOPLE["age"], PEOPLE["weight"], color=INK, s=40)
    for person, (age, weight) in enumerate(people.itertuples(index=False)):
        axes[0].annotate(str(person), (age, weight), (5, 4), textcoords="offset points", fontsize=8)
    for group in np.unique(equal):
        rows = np.flatnonzero(equal == group)
        age, weight = generalized["age"][rows[0]], generalized["weight"][rows[0]]
        axes[1].scatter([age], [weight], s=70 * len(rows), color=SOFT, edgecolor=INK)
        axes[1].annotate(", ".join(map(str, rows)), (age, weight), (9, 7), textcoords="offset points", fontsize=8)
    labels = release.classes.labels
    for label in range(release.classes.count):
        inside = PEOPLE[labels == label]
        low, high = inside[["age", "weight"]].min(), inside[["age", "weight"]].max()
        size = high - low
        axes[2].add_patch(
            Rectangle((low["age"], low["weight"]), size["age"], size["weight"], color=COLORS[label], alpha=0.16)
        )
        axes[2].scatter(inside["age"], inside["weight"], color=COLORS[label], s=40)
    return figure


def draw_node() -> Any:
    """A node's way: from its table to what leaves it."""
    figure, axis = plt.subplots(figsize=(9.6, 3.2), layout="constrained")
    axis.set(xlim=(0, 96), ylim=(0, 32))
    axis.axis("off")
    axis.add_patch(
        FancyBboxPatch((1.5, 2.5), 67, 27, boxstyle="round,pad=0,rounding_size=1.5", fc="#e0f2f1", ec=COLORS[0], lw=1.4)
    )
    axis.text(3.5, 26.2, "a hospital's node", color=COLORS[0], fontsize=10, weight="bold")
    steps = (
        (4, "table\nand schema", "records of people"),
        (21, "release", "claim verified\nby one gate"),
        (38, "model", "trained on\nthe release alone"),
        (55, "door", "node.toml decides,\na ledger counts"),
        (79, "server", "combines updates,\nvalidates each"),
    )
    for x, title, below in steps:
        axis.add_patch(
            FancyBboxPatch((x, 13), 12, 8.5, boxstyle="round,pad=0,rounding_size=1", fc="white", ec=INK, lw=1.2)
        )
        axis.text(x + 6, 17.2, title, ha="center", va="center", fontsize=10, color=INK, weight="bold")
        axis.text(x + 6, 11.4, below, ha="center", va="top", fontsize=8, color=INK)
    for (x, *_), words in zip(steps, ("anonymize", "learn", "answer", "arrays,\nagreed numbers"), strict=False):
        end = 79 if words.startswith("arrays") else x + 17
        axis.annotate(
            "", (end - 0.4, 17.2), (x + 12.4, 17.2), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.3}
        )
        middle = 74 if end == 79 else (x + 12 + end) / 2
        axis.text(middle, 18.2 if end == 79 else 22.4, words, ha="center", va="bottom", fontsize=8, color=INK)
    axis.text(83, 26, "no row leaves,\nno released row either", fontsize=8, color=COLORS[1], ha="center")
    return figure


def main() -> None:
    """Draw all of them."""
    settings = {"svg.hashsalt": "fedanon", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9}
    with plt.rc_context(settings):
        for name, draw in (("das", draw_das), ("gfkmc", draw_gfkmc), ("node", draw_node)):
            figure = draw()
            figure.savefig(FOLDER / f"{name}.png", dpi=144, facecolor="white", metadata={"Software": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
