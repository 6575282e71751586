"""`fedanon tour`: the main job on the bundled data, anonymized federations side by side."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import ConfigError, FedanonError

if TYPE_CHECKING:
    from fedanon.learning.settings import RunSettings
    from fedanon.report.charts import Panel, Series

FEDERATIONS = {"adult": "iid", "randhie": "by:site"}
METHODS = ("gfkmc", "mondrian", "cb", "tdg")
ORIGINAL = "original"
#: where a number stands, seeds apart
PLACE = ("dataset", "method", "k", "model")
MODELS = ("lr", "xgb")
#: shown of every method, with a 95 % interval of the mean over seeds
METRICS = ("accuracy", "auc_pooled", "ncp", "linkage_expected_share", "truthfulness")
EXPLAINED = """\
± is the 95 % interval of a mean over seeds. AUC lost: against the original, seed by seed; 'none seen' means that its
interval holds zero: these runs cannot tell the two apart. original and das promise nothing. NCP: information lost;
linked: share of training records an attacker links back; true: share of published cells that are true."""
#: the least height of a panel of AUC: differences of .01 should look like that
AUC_SPAN = 0.2


@dataclass(frozen=True, kw_only=True)
class TourSource(options.TableSource):
    """An own table instead of the bundled ones."""

    file: Annotated[str | None, typer.Option("--data", help=f"Instead of the bundled tables: {options.INPUT}")] = None


@options.takes_run_settings("rounds", "seed", "partition", "nodes", table=TourSource, rounds=10, partition=None)
def tour(
    chosen: dict[str, Any],
    k: Annotated[str, typer.Option("--k", help="Values of k.")] = "5,20",
    seeds: Annotated[int, typer.Option(help="Number of repetitions, with consecutive seeds from --seed.", min=1)] = 5,
    plot: Annotated[Path | None, typer.Option(help="File for the plot of AUC against k (PNG or SVG).")] = Path(
        "tour.png"
    ),
    force: options.Force = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Federate Adult over ten nodes and RAND HIE over its six sites, with all methods of the thesis; or your own table.

    Every node anonymizes its own training rows; logistic regression and XGBoost are tested on raw rows.
    """
    from fedanon.io.outputs import check_output
    from fedanon.report.drawing import PLOTS

    check_output(plot, endings=PLOTS, force=force)
    rounds, tables = chosen["rounds"], _tables(chosen)
    runs_of = range(chosen["seed"], chosen["seed"] + seeds)
    with audited(audit, "tour") as entry:
        entry |= {"k": k, "rounds": rounds, "seed": chosen["seed"], "seeds": seeds}
        runs = _run_all([run for seed in runs_of for run in _plan(tables, _ks(k), rounds, seed)])
        rows = summarize(runs)
        if plot is not None:
            draw_tour(rows, plot)
            entry["written"] = [plot.name]
    if as_json:
        print_json(rows)
        return
    for one in tables:
        what = f"{one['dataset']} ({one['partition']}), {rounds} rounds, means of {seeds} seeds, tested on raw rows"
        shown = [_texts(row) for row in rows if row["dataset"] == one["dataset"]]
        print_table(what, list(shown[0]), [list(row.values()) for row in shown])
    out = console()
    out.print(EXPLAINED)
    if plot is not None:
        out.print(f"Plot: {plot}")


def _ks(text: str) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ConfigError("--k takes whole numbers separated by commas.") from None


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
        for label, method, chosen in [(ORIGINAL, "identity", {}), ("das", "das", {}), *anonymized]:
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


# ---- means with intervals ------------------------------------------------------------------------


def summarize(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds with the half widths of their 95 % intervals, and what is lost against the original.

    ``auc_lost`` is a difference seed by seed; ``told_apart`` whether its interval leaves out zero (None for one seed).
    """
    places = dict.fromkeys(tuple(run[name] for name in PLACE) for run in runs)
    groups = {place: [run for run in runs if tuple(run[name] for name in PLACE) == place] for place in places}
    rows = []
    for place, group in groups.items():
        at = dict(zip(PLACE, place, strict=True))
        means = {name: _interval([float(run[name]) for run in group]) for name in METRICS}
        row = at | {"seeds": len(group), "settings": group[0]["settings"]}
        row |= {name: mean for name, (mean, _) in means.items()}
        row["half_widths"] = {name: half for name, (_, half) in means.items()}
        if at["method"] != ORIGINAL:
            original = groups[(at["dataset"], ORIGINAL, None, at["model"])]
            pairs = zip(original, group, strict=True)
            lost, half = _interval([before["auc_pooled"] - after["auc_pooled"] for before, after in pairs])
            row |= {"auc_lost": lost, "told_apart": None if half is None else abs(lost) > half}
            row["half_widths"]["auc_lost"] = half
        rows.append(row)
    return rows


def _interval(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half the width of its interval; None for a single number."""
    from scipy.stats import t

    mean = fmean(values)
    if len(values) < 2:
        return mean, None
    return mean, float(t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table for people."""
    shown = {"method": row["method"], "k": row["k"], "model": row["model"]}
    shown |= {"AUC": _with_half(row, "auc_pooled"), "AUC lost": ""}
    if "auc_lost" in row:
        lost = _with_half(row, "auc_lost")
        shown["AUC lost"] = f"{lost} (none seen)" if row["told_apart"] is False else lost
    names = {"accuracy": "accuracy", "ncp": "NCP", "linkage_expected_share": "linked", "truthfulness": "true"}
    return shown | {title: _with_half(row, name) for name, title in names.items()}


def _with_half(row: dict[str, Any], name: str) -> str:
    half = row["half_widths"][name]
    return f"{row[name]:.3f}" if half is None or half < 0.0005 else f"{row[name]:.3f} ± {half:.3f}"


# ---- the plot ------------------------------------------------------------------------------------


def draw_tour(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw one panel per data set and model, one line per method; level lines are runs without k."""
    from fedanon.report.charts import REFERENCE
    from fedanon.report.drawing import write_plot

    names = dict.fromkeys(row["method"] for row in rows)
    styles = {name: REFERENCE if name == ORIGINAL else style for style, name in enumerate(names, start=-1)}
    places = dict.fromkeys((row["dataset"], row["model"]) for row in rows)
    parts = {place: [one for one in rows if (one["dataset"], one["model"]) == place] for place in places}
    panels = [_panel(", ".join(place), part, styles) for place, part in parts.items()]
    write_plot(panels, path, across=len({model for _, model in places}))


def _panel(title: str, rows: Sequence[dict[str, Any]], styles: dict[str, int]) -> Panel:
    from fedanon.report.charts import Panel

    ks = sorted({row["k"] for row in rows if row["k"] is not None})
    with_k = [name for name in styles if any(row["method"] == name and row["k"] is not None for row in rows)]
    series = [
        _series([row for row in rows if row["method"] == name], style, ks, _aside(name, with_k))
        for name, style in styles.items()
    ]
    ticks = tuple((float(position), str(k)) for position, k in enumerate(ks))
    return Panel(
        title=title,
        x_label="k, the least size of a class",
        y_label="AUC on raw test rows",
        series=tuple(series),
        x_ticks=ticks,
        y_span=AUC_SPAN,
    )


def _series(rows: Sequence[dict[str, Any]], style: int, ks: list[int], aside: float) -> Series:
    from fedanon.report.charts import Series

    scores = [row["auc_pooled"] for row in rows]
    halves = [row["half_widths"]["auc_pooled"] or 0.0 for row in rows]
    level = rows[0]["k"] is None
    return Series(
        label=rows[0]["method"],
        style=style,
        x=(0.0,) if level else tuple(ks.index(row["k"]) + aside for row in rows),
        y=tuple(scores),
        low=tuple(score - half for score, half in zip(scores, halves, strict=True)),
        high=tuple(score + half for score, half in zip(scores, halves, strict=True)),
        form="level" if level else "line",
    )


def _aside(name: str, names: list[str]) -> float:
    """How far a method is drawn beside its k, so that intervals do not cover each other."""
    return 0.07 * (names.index(name) - (len(names) - 1) / 2) if name in names else 0.0
