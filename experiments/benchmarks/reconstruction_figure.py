"""The figure of the README: AUC against the share of cells rebuilt from trees, where nodes differ.

    python experiments/benchmarks/reconstruction_figure.py [-o docs/figures/reconstruction_skewed.png]

Drawn from the stored results of experiments/reconstruction_skewed.toml: means over the seeds, and the better of two
guesses, matched in the same way, as a line.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from fedanon.report.charts import REFERENCE, Panel, Series
from fedanon.report.drawing import write_plot

HERE = Path(__file__).parent.parent
DRAWN = ("raw", "raw, no sum_hessian", "DP trees", "k-member", "joint")
NAMES = {
    "DP trees": "DP trees, epsilon 1",
    "k-member": "anonymized alone, k = 10",
    "joint": "anonymized jointly, k = 10",
}


def panel(name: str, found: pd.DataFrame) -> Panel:
    """One data set: a point per way to train, and the guess."""
    means = found.pivot_table(index="label", columns="measure", values="value")
    points = [
        Series(
            label=NAMES.get(label, label),
            style=number,
            x=(float(means.loc[label, "rebuilt"]),),
            y=(float(means.loc[label, "auc"]),),
            form="points",
        )
        for number, label in enumerate(DRAWN)
    ]
    guess = float(means.loc["raw", ["rebuilt_marginals", "rebuilt_own_rows"]].max())
    height = (float(means["auc"].min()) - 0.02, float(means["auc"].max()) + 0.02)
    line = Series(label="guessing without trees", style=REFERENCE, x=(guess, guess), y=height)
    ticks = tuple((share / 10, f"{10 * share} %") for share in range(3, 10))
    return Panel(
        title=f"{name}, five nodes that differ",
        x_label="share of the victim's cells rebuilt",
        y_label="AUC on raw rows",
        series=(*points, line),
        x_ticks=ticks,
    )


def main() -> None:
    """Read the results and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "docs/figures/reconstruction_skewed.png")
    given = parser.parse_args()
    found = pd.read_csv(HERE / "results/reconstruction_skewed/results.csv")
    write_plot([panel(str(name), part) for name, part in found.groupby("grid", sort=False)], given.output)


if __name__ == "__main__":
    main()
