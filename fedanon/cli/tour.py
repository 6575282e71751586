"""`fedanon tour`: the main job on the bundled data, anonymised federations side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, new_figure, print_json, print_table, save_figure

if TYPE_CHECKING:
    from fedanon.learning.settings import RunSettings

FEDERATIONS = {"adult": "iid", "randhie": "by:site"}
METHODS = ("gfkmc", "mondrian", "cb", "tdg")
MODELS = ("lr", "xgb")
COLUMNS = ("dataset", "method", "k", "model", "accuracy", "auc_pooled", "ncp", "linkage", "truthfulness", "seconds")


@options.takes_run_settings("rounds", "seed", rounds=20)
def tour(
    chosen: dict[str, Any],
    k: Annotated[str, typer.Option("--k", help="Values of k.")] = "5,10,20",
    plot: Annotated[Path | None, typer.Option(help="Where to draw AUC against k (PNG or SVG).")] = Path("tour.png"),
    as_json: options.Json = False,
) -> None:
    """Federate Adult over ten nodes and RAND HIE over its six sites, with every method of the thesis.

    Every node anonymises its own training rows; logistic regression and XGBoost are tested on raw rows.
    """
    rounds = chosen["rounds"]
    results = _run_all(list(_plan([int(part) for part in k.split(",")], rounds, chosen["seed"])))
    if plot is not None:
        draw_tour(results, plot)
    if as_json:
        print_json(results)
        return
    for dataset, partition in FEDERATIONS.items():
        rows = [[result[name] for name in COLUMNS[1:]] for result in results if result["dataset"] == dataset]
        print_table(f"{dataset} ({partition}), {rounds} rounds, tested on raw rows", list(COLUMNS[1:]), rows)
    out = console()
    out.print("original and das promise nothing. ncp: information lost; linkage: share of training records an attacker")
    out.print("links back; truthfulness: share of published cells that are true of their record.")
    if plot is not None:
        out.print(f"Plot: {plot}")


def _plan(ks: Sequence[int], rounds: int, seed: int) -> Iterator[tuple[dict[str, Any], RunSettings]]:
    from fedanon.learning.settings import RunSettings

    anonymized = [(method, method, {"k": k}) for method in METHODS for k in ks]
    for dataset, partition in FEDERATIONS.items():
        for label, method, chosen in [("original", "identity", {}), ("das", "das", {}), *anonymized]:
            for model in MODELS:
                settings = RunSettings(
                    dataset=dataset,
                    partition=partition,
                    method=method,
                    method_settings=chosen,
                    model=model,
                    rounds=rounds,
                    evaluate_every=rounds,
                    seed=seed,
                )
                yield {"dataset": dataset, "method": label, "k": chosen.get("k"), "model": model}, settings


def _run_all(plan: list[tuple[dict[str, Any], RunSettings]]) -> list[dict[str, Any]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    # one thread a process: the processes share the cores already
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    results: dict[int, dict[str, Any]] = {}
    columns = (TextColumn("federations"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    workers = os.cpu_count() or 1
    with (
        Progress(*columns, console=console(stderr=True), transient=True) as progress,
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
    ):
        task = progress.add_task("", total=len(plan))
        jobs = {pool.submit(_simulate, settings): i for i, (_, settings) in enumerate(plan)}
        for job in as_completed(jobs):
            results[jobs[job]] = plan[jobs[job]][0] | job.result()
            progress.advance(task)
    return [results[i] for i in sorted(results)]


def _simulate(settings: RunSettings) -> dict[str, Any]:
    import logging

    from fedanon.federated.simulation import simulate

    logging.getLogger("fedanon").setLevel(logging.ERROR)
    return simulate(settings).to_dict()


# ---- The plot of the tour ------------------------------------------------------------------------


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
