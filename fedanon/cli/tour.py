"""`fedanon tour`: the main job on the bundled data, anonymised federations side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table

if TYPE_CHECKING:
    from fedanon.federated.settings import RunSettings

FEDERATIONS = {"adult": "iid", "randhie": "by:site"}
METHODS = ("gfkmc", "mondrian", "cb", "tdg")
MODELS = ("lr", "xgb")
COLUMNS = ("dataset", "method", "k", "model", "accuracy", "auc_pooled", "ncp", "linkage", "truthfulness", "seconds")


def tour(
    rounds: Annotated[int, typer.Option(help="Rounds of training.", min=1)] = 20,
    k: Annotated[str, typer.Option("--k", help="Values of k.")] = "5,10,20",
    plot: Annotated[Path | None, typer.Option(help="Where to draw AUC against k (PNG or SVG).")] = Path("tour.png"),
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Federate Adult over ten clients and RAND HIE over its six sites, with every method of the thesis.

    Every client anonymises its own training rows; logistic regression and XGBoost are tested on raw rows.
    """
    results = _run_all(list(_plan([int(part) for part in k.split(",")], rounds, seed)))
    if plot is not None:
        from fedanon.cli.tour_plot import draw_tour

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
    from fedanon.federated.settings import RunSettings

    anonymized = [(method, method, {"k": k}) for method in METHODS for k in ks]
    for dataset, partition in FEDERATIONS.items():
        for label, method, chosen in [("original", "identity", {}), ("das", "das", {}), *anonymized]:
            for model in MODELS:
                settings = RunSettings(
                    dataset=dataset,
                    partition=partition,
                    method=method,
                    method_settings=json.dumps(chosen),
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
