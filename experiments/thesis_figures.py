"""Every figure of the thesis's chapter 6 beside ours, drawn from the stored results: docs/figures/thesis_6_*.png.

    python experiments/thesis_figures.py [FOLDER]

Lines are ours, markers without a line are published (stored results of the thesis's code; of figures 6.11 to 6.14 the
rounds that are known). Figures 6.1 and 6.2 are computed here and need the WEF table in FEDANON_DATA.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.anonymizers.gfkmc._kernel import distortions
from fedanon.anonymizers.gfkmc.das import elbow
from fedanon.datasets import load
from fedanon.harness.result_set import ResultSet, read_results
from fedanon.report.charts import REFERENCE, Panel, Series
from fedanon.report.drawing import write_plot

HERE = Path(__file__).parent
METHODS = ("GFKMC", "Mondrian", "CB", "TDG", "GFKMC, as printed")
K = "k, the least size of a class"


def results(name: str) -> ResultSet:
    return read_results(HERE / "results" / name)


def line(label: str, x: Sequence[Any], y: Sequence[Any]) -> Series:
    style = REFERENCE if label == "original" else METHODS.index(label)
    return Series(label=label, style=style, x=tuple(map(float, x)), y=tuple(map(float, y)), form="band")


def published(label: str, x: Sequence[Any], y: Sequence[Any]) -> Series:
    style = REFERENCE if label == "original" else METHODS.index(label)
    points = tuple(map(float, x)), tuple(map(float, y))
    return Series(label=f"{label}, published", style=style, x=points[0], y=points[1], form="points")


# ---- 6.1 and 6.2: the elbow ----------------------------------------------------------------------


def elbow_panel(dataset: str, column: str, printed: int) -> Panel:
    table = load(dataset)
    (values,) = (c.values for c in table.columns if c.name == column)
    assert values is not None
    known = np.unique(values[~np.isnan(values)]).astype(float)
    distortions(known, -1.0)  # compiled now
    begun = time.process_time()
    for _ in range(20):
        curve = distortions(known, -1.0)
    spent = (time.process_time() - begun) / 20
    most = min(len(curve), 30)
    groups = elbow(values)
    ours = Series(
        label="distortion, exact 1-D k-means", style=0, x=tuple(range(1, most + 1)), y=tuple(curve[:most]), form="band"
    )
    knee = Series(label="elbow, ours", style=1, x=(groups,), y=(curve[groups - 1],), form="points")
    theirs = Series(label="elbow, printed", style=2, x=(printed,), y=(curve[printed - 1],), form="points")
    return Panel(
        title=f"{column}: {len(curve)} fits, {1000 * spent:.2g} ms",
        x_label="number of groups",
        y_label="distortion (sum of squares)",
        series=(ours, knee, theirs),
        y_log=True,
    )


# ---- 6.3 to 6.6: loss and linkage ----------------------------------------------------------------


def across_k(found: ResultSet, metric: str, title: str, y_label: str, *, log: bool = False) -> Panel:
    series = []
    for label in METHODS:
        own = found.results[(found.results["label"] == label) & (found.results["measure"] == metric)]
        means = own.groupby("k")["value"].mean()
        series.append(line(label, means.index, means))
    theirs = found.comparison[found.comparison["measure"] == metric]
    for label, rows in theirs[theirs["label"].isin(METHODS)].groupby("label", sort=False):
        shown = rows[rows["k"].isin([2, 3, 5, *range(10, 101, 10)])]
        series.append(published(str(label), shown["k"], shown["published"]))
    return Panel(title=title, x_label=K, y_label=y_label, series=tuple(series), y_zero=not log, y_log=log)


def loss_panels(name: str) -> list[Panel]:
    found = results(name)
    return [
        across_k(found, "ncp_published", "as the thesis computes it", "NCP of the published values"),
        across_k(found, "ncp", "of the original values (not published)", "NCP"),
    ]


def linkage_panels(name: str) -> list[Panel]:
    return [across_k(results(name), "linkage_thesis", "", "linked records", log=True)]


# ---- 6.7 to 6.10: classifiers --------------------------------------------------------------------


def model_panels(model: str) -> list[Panel]:
    found = results("thesis_central_models")
    here = found.results[(found.results["grid"] == "as published") & (found.results["model"] == model)]
    theirs = found.comparison[found.comparison["model"] == model]
    titles = {"accuracy": "accuracy", "precision_macro": "precision", "f1_macro": "F1", "recall_macro": "recall"}
    panels = []
    for metric, title in titles.items():
        numbers = here[here["measure"] == metric]
        level = float(numbers[numbers["label"] == "original"]["value"].iloc[0])
        series = [Series(label="original", style=REFERENCE, x=(0.0,), y=(level,), form="level")]
        for label in METHODS:
            means = numbers[numbers["label"] == label].groupby("k")["value"].mean()
            series.append(line(label, means.index, means))
        for label, rows in theirs[theirs["measure"] == metric].groupby("label", sort=False):
            if label in METHODS:
                series.append(published(str(label), rows["k"], rows["published"]))
        panels.append(Panel(title=title, x_label=K, y_label=title, series=tuple(series), y_span=0.2))
    return panels


# ---- 6.11 to 6.14: rounds ------------------------------------------------------------------------


def round_panels(grid: str, curve: str, points: dict[float, str]) -> list[Panel]:
    """One panel per k; ``points`` are the metrics of published numbers by the round they stand at."""
    found = results("thesis_federated_grid")
    curves = found.curves[(found.curves["grid"] == grid) & (found.curves["measure"] == curve)]
    theirs = found.comparison[found.comparison["grid"] == grid]
    panels = []
    for k in (3, 5, 10, 20):
        series = []
        for label in ("original", *METHODS):
            own = curves[(curves["label"] == label) & (curves["k"].isna() | (curves["k"] == k))]
            series += [line(label, own["round"], own["value"])] if len(own) else []
        for label in ("original", *METHODS[:4]):
            rows = theirs[(theirs["label"] == label) & (theirs["k"].isna() | (theirs["k"] == k))]
            known = {at: rows[rows["measure"] == metric]["published"] for at, metric in points.items()}
            values = {at: float(value.iloc[0]) for at, value in known.items() if len(value)}
            series += [published(label, list(values), list(values.values()))] if values else []
        title = curve.replace("_client_mean", "").replace("_trained", ", nodes of the round").replace("_", "-")
        panels.append(Panel(title=f"k = {k}", x_label="round", y_label=title, series=tuple(series), y_span=0.1))
    return panels


def main(folder: Path) -> None:
    figures: dict[str, list[Panel]] = {
        "6_1_and_6_2": [
            elbow_panel("wef", "Weight(kg)", 6),
            elbow_panel("adult_numeric", "hours-per-week", 9),
        ],
        "6_3": loss_panels("thesis_central_loss"),
        "6_4": loss_panels("thesis_federated_privacy"),
        "6_5": linkage_panels("thesis_central_linkage"),
        "6_6": linkage_panels("thesis_federated_privacy"),
    }
    for number, model in ((7, "knn"), (8, "rf"), (9, "svm"), (10, "xgb")):
        figures[f"6_{number}"] = model_panels(model)
    lr, xgb = "logistic regression", "XGBoost"
    figures["6_11"] = round_panels(lr, "accuracy", {1: "accuracy_first", 100: "accuracy"})
    figures["6_12"] = round_panels(lr, "log_loss", {1: "log_loss_first", 100: "log_loss"})
    figures["6_13"] = round_panels(xgb, "accuracy_trained", {90: "accuracy_trained_last20"})
    figures["6_14"] = round_panels(xgb, "auc_client_mean_trained", {90: "auc_client_mean_trained_last20"})
    folder.mkdir(parents=True, exist_ok=True)
    for name, panels in figures.items():
        write_plot(panels, folder / f"thesis_{name}.png", across=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "docs" / "figures")
