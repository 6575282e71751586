"""`fedanon tour`: the main job on the bundled data, anonymized federations side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import FedanonError

if TYPE_CHECKING:
    from fedanon.learning.settings import RunSettings
    from fedanon.report.charts import Panel

FEDERATIONS = {"adult": "iid", "randhie": "by:site"}
METHODS = ("gfkmc", "mondrian", "cb", "tdg")
MODELS = ("lr", "xgb")
COLUMNS = ("dataset", "method", "k", "model", "accuracy", "auc_pooled", "ncp", "linkage", "truthfulness", "seconds")


@dataclass(frozen=True, kw_only=True)
class TourSource(options.TableSource):
    """An own table instead of the bundled ones."""

    file: Annotated[str | None, typer.Option("--data", help=f"Instead of the bundled tables: {options.INPUT}")] = None


@options.takes_run_settings("rounds", "seed", "partition", "nodes", table=TourSource, rounds=20, partition=None)
def tour(
    chosen: dict[str, Any],
    k: Annotated[str, typer.Option("--k", help="Values of k.")] = "5,10,20",
    plot: Annotated[Path | None, typer.Option(help="Where to draw AUC against k (PNG or SVG).")] = Path("tour.png"),
    force: options.Force = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Federate Adult over ten nodes and RAND HIE over its six sites, with every method of the thesis; or an own table.

    Every node anonymizes its own training rows; logistic regression and XGBoost are tested on raw rows.
    """
    from fedanon.io.outputs import check_output
    from fedanon.report.drawing import PLOTS

    check_output(plot, endings=PLOTS, force=force)
    rounds, tables = chosen["rounds"], _tables(chosen)
    with audited(audit, "tour") as entry:
        entry |= {"k": k, "rounds": rounds, "seed": chosen["seed"]}
        results = _run_all(list(_plan(tables, [int(part) for part in k.split(",")], rounds, chosen["seed"])))
        if plot is not None:
            draw_tour(results, plot)
            entry["written"] = [plot.name]
    if as_json:
        print_json(results)
        return
    for dataset, partition in ((one["dataset"], one["partition"]) for one in tables):
        rows = [[result[name] for name in COLUMNS[1:]] for result in results if result["dataset"] == dataset]
        print_table(f"{dataset} ({partition}), {rounds} rounds, tested on raw rows", list(COLUMNS[1:]), rows)
    out = console()
    out.print("original and das promise nothing. ncp: information lost; linkage: share of training records an attacker")
    out.print("links back; truthfulness: share of published cells that are true of their record.")
    if plot is not None:
        out.print(f"Plot: {plot}")


def _tables(chosen: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings that say which tables are federated, and how they are divided."""
    from fedanon.federated.sources import default_partition

    if chosen["dataset"] is None:
        return [{"dataset": dataset, "partition": partition} for dataset, partition in FEDERATIONS.items()]
    partition = chosen["partition"] or default_partition(chosen["source"])
    return [{name: chosen[name] for name in ("dataset", "source", "nodes")} | {"partition": partition}]


def _plan(
    tables: Sequence[dict[str, Any]], ks: Sequence[int], rounds: int, seed: int
) -> Iterator[tuple[dict[str, Any], RunSettings]]:
    from fedanon.learning.settings import RunSettings

    anonymized = [(method, method, {"k": k}) for method in METHODS for k in ks]
    for table in tables:
        for label, method, chosen in [("original", "identity", {}), ("das", "das", {}), *anonymized]:
            for model in MODELS:
                settings = RunSettings(
                    **table,
                    method=method,
                    method_settings=chosen,
                    model=model,
                    rounds=rounds,
                    evaluate_every=rounds,
                    seed=seed,
                )
                yield {"dataset": table["dataset"], "method": label, "k": chosen.get("k"), "model": model}, settings


def _run_all(plan: list[tuple[dict[str, Any], RunSettings]]) -> list[dict[str, Any]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fedanon.harness.workers import over_processes

    results: dict[int, dict[str, Any]] = {}
    columns = (TextColumn("federations"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks = [(str(i), _Federation(settings)) for i, (_, settings) in enumerate(plan)]
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=len(plan))
        for key, done in over_processes(tasks, os.cpu_count() or 1):
            if done.result is None:
                raise FedanonError(f"A federation of the tour failed: {done.error}")
            results[int(key)] = plan[int(key)][0] | done.result
            progress.advance(bar)
    return [results[i] for i in sorted(results)]


@dataclass(frozen=True)
class _Federation:
    """One federation of the tour, as a task for a process."""

    settings: RunSettings

    def run(self) -> dict[str, Any]:
        import logging

        from fedanon.federated.simulation import simulate

        logging.getLogger("fedanon").setLevel(logging.ERROR)
        return simulate(self.settings).to_dict()


# ---- the plot ------------------------------------------------------------------------------------


def draw_tour(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw one panel per data set and model, one line per method; level lines are runs without k."""
    from fedanon.report.drawing import write_plot

    styles = {name: style for style, name in enumerate(dict.fromkeys(result["method"] for result in results))}
    places = dict.fromkeys((result["dataset"], result["model"]) for result in results)
    parts = {place: [one for one in results if (one["dataset"], one["model"]) == place] for place in places}
    panels = [_panel(", ".join(place), part, styles) for place, part in parts.items()]
    write_plot(panels, path, across=len({model for _, model in places}))


def _panel(title: str, results: Sequence[dict[str, Any]], styles: dict[str, int]) -> Panel:
    from fedanon.report.charts import Panel, Series

    ks = sorted({result["k"] for result in results if result["k"] is not None})
    series = []
    for name, style in styles.items():
        own = [result for result in results if result["method"] == name]
        scores = tuple(float(result["auc_pooled"]) for result in own)
        if own[0]["k"] is None:
            series.append(Series(label=name, style=style, x=(0.0,), y=scores[:1], form="level"))
        else:
            series.append(Series(label=name, style=style, x=tuple(float(ks.index(r["k"])) for r in own), y=scores))
    ticks = tuple((float(position), str(k)) for position, k in enumerate(ks))
    return Panel(title=title, x_label="k", y_label="AUC on raw test rows", series=tuple(series), x_ticks=ticks)
