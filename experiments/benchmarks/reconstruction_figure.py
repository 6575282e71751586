"""The figure of the README: AUC against the share of records and of cells rebuilt from trees, where nodes differ.

    python experiments/benchmarks/reconstruction_figure.py [-o docs/figures/reconstruction_skewed.png]

Drawn from the stored results of experiments/reconstruction_skewed.toml, five nodes: means over the seeds, and the
better of two guesses, matched in the same way, as a line. A record is rebuilt if all its cells are right.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from fedanon.report.charts import REFERENCE, Panel, Series
from fedanon.report.drawing import write_plot

HERE = Path(__file__).parent.parent
#: in this order, as raw trees lie on those without sum_hessian and a dot leaves the corners of a square in sight
DRAWN = ("raw, no sum_hessian", "raw", "DP trees", "k-member", "joint")
STYLES = {label: number for number, label in enumerate(("raw", *(label for label in DRAWN if label != "raw")))}
NODES = 5
NAMES = {
    "raw, no sum_hessian": "raw, sum_hessian removed",
    "DP trees": "DP trees, epsilon 1",
    "k-member": "anonymized alone, k = 10",
    "joint": "anonymized jointly, k = 10",
}


def panel(name: str, found: pd.DataFrame, what: str, rebuilt: str, guesses: list[str], ticks: range) -> Panel:
    """One data set: a point per way to train, and the better guess."""
    means = found[found["grid"] == name].pivot_table(index="label", columns="measure", values="value")
    points = [
        Series(
            label=NAMES.get(label, label),
            style=STYLES[label],
            x=(float(means.loc[label, rebuilt]),),
            y=(float(means.loc[label, "auc"]),),
            form="points",
        )
        for label in DRAWN
    ]
    guess = float(means.loc["raw", guesses].max())
    height = (float(means["auc"].min()) - 0.02, float(means["auc"].max()) + 0.02)
    line = Series(label="guessing without trees", style=REFERENCE, x=(guess, guess), y=height)
    return Panel(
        title=f"{name}, {what}",
        x_label=f"{what} of the victim rebuilt",
        y_label="AUC on raw rows",
        series=(*points, line),
        x_ticks=tuple((share / 100, f"{share} %") for share in ticks),
    )


def main() -> None:
    """Read the results and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "docs/figures/reconstruction_skewed.png")
    given = parser.parse_args()
    found = pd.read_csv(HERE / "results/reconstruction_skewed/results.csv")
    found = found[found["clients"] == NODES]
    whole = ["whole_rows_of_marginals", "whole_rows_of_own_rows"]
    cells = ["rebuilt_marginals", "rebuilt_own_rows"]
    panels = [
        panel("stroke", found, "records", "whole_rows", whole, range(0, 16, 5)),
        panel("stroke", found, "cells", "rebuilt", cells, range(20, 91, 10)),
        panel("Pima", found, "cells", "rebuilt", cells, range(20, 91, 10)),
    ]
    write_plot(panels, given.output)


if __name__ == "__main__":
    main()
