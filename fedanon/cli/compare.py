"""`fedanon compare`: loss and risk of many methods and many k on one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table, tell_progress
from fedanon.cli.runs import component_of, make_anonymizer, run
from fedanon.errors import ConfigError, FedanonError

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer
    from fedanon.data.table import Table

COLUMNS = (
    ("method", "method"),
    ("k", "k"),
    ("k_reached", "k reached"),
    ("classes", "classes"),
    ("ncp", "NCP"),
    ("ncp_published", "NCP published"),
    ("linkage_expected_share", "linked"),
    ("truthfulness", "true cells"),
    ("suppressed", "suppressed"),
    ("seconds", "seconds"),
)


@options.takes_table_source
def compare(
    source: options.TableSource,
    methods: Annotated[str, typer.Option(help="Methods a,b,c, or `all` except the perturbative ones.")] = "all",
    k: Annotated[str, typer.Option("--k", help="Values of k: 3,5,10,20.")] = "5,10",
    seed: options.Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Also plot loss against risk into this file (PNG or SVG).")] = None,
    force: options.Force = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Compare methods by information loss and re-identification risk across k.

    A method that cannot run on the table is listed with the reason; the others still run.
    """
    from fedanon.io.outputs import check_output
    from fedanon.report.drawing import PLOTS

    check_output(plot, inputs=source.inputs, endings=PLOTS, force=force)
    runs = _plan(methods, _ks(k))
    with audited(audit, "compare") as entry:
        table = source.load()
        entry |= {"methods": methods, "k": k, "seed": seed, "data_sha256": table.sha256}
        results, failures = _run_all(runs, table, seed)
        if plot is not None:
            draw_tradeoff(results, plot)
            entry["written"] = [plot.name]
    if as_json:
        hashes = {"data_sha256": table.sha256, "schema_sha256": table.schema.sha256}
        print_json({"n": len(table), "seed": seed, **hashes, "results": results, "failures": failures})
        return
    columns = _columns(table)
    rows = [[result[key] for key, _ in columns] for result in results]
    print_table(f"{len(table):,} rows, {len(table.columns)} quasi-identifiers", [title for _, title in columns], rows)
    out = console()
    for failure in failures:
        out.print(f"Not run: {failure['method']}: {failure['reason']}")
    out.print(
        "NCP: information lost, from the original values (0 to 1). linked: share of records an attacker who knows"
    )
    out.print("all quasi-identifiers links back to the right person. true cells: published cells that are not false.")
    if ("il", "IL (%)") in columns:
        out.print("IL: squared error over the total variation, in per cent; methods that publish means aim at it.")
    if plot is not None:
        out.print(f"Plot: {plot}")


def _columns(table: Table) -> list[tuple[str, str]]:
    """What is shown of a run; where all quasi-identifiers are numbers, also the loss of means."""
    from fedanon.anonymizers.anneal.problem import choose_objective

    columns = list(COLUMNS)
    if choose_objective(table) == "sse":
        columns.insert(columns.index(("ncp", "NCP")) + 1, ("il", "IL (%)"))
    return columns


def _ks(text: str) -> list[int]:
    try:
        ks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise ConfigError("--k takes whole numbers separated by commas.") from None
    if ks[0] < 2:
        raise ConfigError(f"The 'k' parameter must be an int >= 2. Got {ks[0]} instead.")
    return ks


def _plan(methods: str, ks: list[int]) -> list[Anonymizer]:
    """Every method with every k; methods without k once. Methods that change values run only where they are named."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.anonymizers.base import takes_k
    from fedanon.sdc.methods.base import Perturbative

    names = [name.strip() for name in methods.split(",")]
    if methods == "all":
        names = [name for name, method in ANONYMIZERS.items() if not issubclass(method, Perturbative)]
    plan = []
    for name in names:
        plan += [make_anonymizer(name, k, {}) for k in (ks if takes_k(component_of(name)) else [None])]
    return plan


def _run_all(plan: list[Anonymizer], table: Table, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    results: list[dict[str, Any]] = []
    failures: dict[str, dict[str, Any]] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(plan))
        for done, anonymizer in enumerate(plan):
            text = f"{anonymizer.name} k={getattr(anonymizer, 'k', '-')}"
            progress.update(task, description=text)
            tell_progress(done / len(plan), text)
            try:
                results.append(run(anonymizer, table, seed)[1])
            except FedanonError as error:
                failures.setdefault(anonymizer.name, {"method": anonymizer.name, "reason": str(error)})
            progress.advance(task)
    return results, list(failures.values())


# ---- the plot ------------------------------------------------------------------------------------


def draw_tradeoff(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw NCP against the share of linked records, one line per method; points are labeled with k."""
    from fedanon.report.charts import Panel, Series
    from fedanon.report.drawing import write_plot

    series = []
    for style, method in enumerate(dict.fromkeys(result["method"] for result in results)):
        points = [result for result in results if result["method"] == method]
        series.append(
            Series(
                label=method if points[0]["claim"] is not None else f"{method} (no promise)",
                style=style,
                x=tuple(100 * result["ncp"] for result in points),
                y=tuple(100 * result["linkage_expected_share"] for result in points),
                texts=tuple(str(result["k"] or "") for result in points),
            )
        )
    panel = Panel(
        title="Loss against risk; numbers are k. Towards the lower left is better.",
        x_label="information loss, NCP from original values (%)",
        y_label="records linked by an attacker (%)",
        series=tuple(series),
        y_log=True,
        large=True,
    )
    write_plot([panel], path)
