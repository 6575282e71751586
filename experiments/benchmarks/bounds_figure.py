"""Loss against time with what is proved as a line: docs/figures/bounds.png.

    python experiments/benchmarks/bounds_figure.py [-o docs/figures/bounds.png]

Drawn from the stored results of experiments/bounds.toml. Reference sets: k = 3, seconds of wall time; the last point is
the median of the seeds, with the least and the largest. Nodes of the thesis (means) and Adult: k = 5, CPU seconds of
growing numbers of trials.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from fedanon.report.charts import REFERENCE, Panel, Series
from fedanon.report.drawing import write_plot

HERE = Path(__file__).parent.parent
SETS = {"tarragona": "Tarragona", "census": "Census", "eia": "EIA"}


def panel(title: str, x_label: str, y_label: str, points: list[tuple[float, pd.Series]], bound: float) -> Panel:
    """Losses at growing times, and the bound; values per time are those of the seeds."""
    points = sorted(points, key=lambda point: point[0])
    reached = Series(
        label="anneal",
        style=0,
        x=tuple(x for x, _ in points),
        y=tuple(float(values.median()) for _, values in points),
        low=tuple(float(values.min()) for _, values in points),
        high=tuple(float(values.max()) for _, values in points),
    )
    proved = Series(label="no partition loses less", style=REFERENCE, x=(points[0][0],), y=(bound,), form="level")
    return Panel(title=title, x_label=x_label, y_label=y_label, series=(reached, proved), x_log=True)


def reference_panel(found: pd.DataFrame, dataset: str) -> Panel:
    """A reference set at k = 3."""
    here = found[(found["dataset"] == dataset) & (found["k"] == 3)]
    runs = here[here["grid"].isin(["sooner", "reached"]) & (here["measure"] == "il")]
    points = [(float(json.loads(str(one))["seconds"]), values["value"]) for one, values in runs.groupby("settings")]
    bound = float(here.loc[(here["grid"] == "proved") & (here["measure"] == "bound_il"), "value"].iloc[0])
    return panel(f"{SETS[dataset]}, k = 3", "seconds", "IL in %", points, bound)


def mixed_panel(found: pd.DataFrame, grid: str, title: str) -> Panel:
    """A mixed table at k = 5."""
    runs = found[found["grid"] == grid].pivot_table(index="label", columns="measure", values="value")
    points = [(float(run["cpu_seconds"]), pd.Series([run["ncp"]])) for _, run in runs.iterrows()]
    proved = found[(found["grid"] == f"{grid} proved") & (found["measure"] == "bound_ncp")]
    return panel(title, "CPU seconds", "NCP", points, float(proved["value"].iloc[0]))


def main() -> None:
    """Read the results and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent / "docs/figures/bounds.png")
    given = parser.parse_args()
    found = pd.read_csv(HERE / "results/bounds/results.csv")
    panels = [reference_panel(found, dataset) for dataset in SETS]
    panels += [
        mixed_panel(found, "nodes", "Ten nodes of Adult, k = 5"),
        mixed_panel(found, "Adult", "Adult, 30,162 rows, k = 5"),
    ]
    write_plot(panels, given.output, across=3)


if __name__ == "__main__":
    main()
