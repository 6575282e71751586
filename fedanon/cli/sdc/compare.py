"""`fedanon sdc compare`: risk against loss of methods for numbers, each at several values of its parameters.

The options and the run of a comparison are shared with `fedanon sdc recommend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import ConfigError
from fedanon.fields import warn_renamed

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.data.table import Table
    from fedanon.report.charts import Form
    from fedanon.sdc.masking import Masking
    from fedanon.sdc.sweeps import Variant

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Columns a,b,c to mask, all numeric or all categorical; by default the numeric quasi-identifiers.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option("--method", help="A method to compare; may be repeated. By default, all methods for numbers."),
]
Sweeps = Annotated[
    list[str] | None,
    typer.Option("--sweep", metavar="[METHOD:]NAME=V,V,...", help="Values of a parameter, such as c=0.01,0.1,0.5."),
]
ReverseMap = Annotated[
    bool, typer.Option("--reverse-map", help="Also compare with the original values in the new order.")
]
Restricted = Annotated[bool, typer.Option("--restricted", help="Also compare with zeros kept and no negative values.")]
Given = Annotated[
    str | None,
    typer.Option("--given", help="Columns a,b,c that stay and explain the others in models such as egadp; or anova."),
]
Complete = Annotated[bool, typer.Option("--complete", help="Skip rows that lack one of the columns.")]
Sample = Annotated[int, typer.Option(help="Compare on this many randomly drawn rows; 0 means all.", min=0)]
RiskMetric = Annotated[
    str | None,
    typer.Option(
        "--risk", metavar="METRIC", help="Risk metric; dld by default, linkage_expected_share for categories."
    ),
]
LossMetric = Annotated[
    str | None,
    typer.Option("--loss", metavar="METRIC", help="Loss metric; il2 by default, conditional_entropy for categories."),
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Also plot risk against loss into this file (PNG or SVG).")]


@options.takes_table_source
def compare(
    source: options.TableSource,
    columns: Columns = None,
    methods: Methods = None,
    sweeps: Sweeps = None,
    given: Given = None,
    reverse_map: ReverseMap = False,
    restricted: Restricted = False,
    complete: Complete = False,
    sample: Sample = 0,
    metrics: Annotated[str | None, typer.Option(help="Metrics a,b,c instead of the usual ones.")] = None,
    measures: Annotated[str | None, typer.Option(hidden=True, help="Former name of --metrics.")] = None,
    risk: RiskMetric = None,
    loss: LossMetric = None,
    seed: options.Seed = 0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the rows (CSV or JSON).")] = None,
    plot: Plot = None,
    force: options.Force = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Sweep the parameters of methods for numbers, such as --method additive_noise --sweep c=0.01,0.05,0.1,0.5.

    Without --method, every perturbative method for numbers and microaggregation run at their usual values; if the
    columns are categorical, the methods for categories do.
    --risk and --loss are the axes of the plot; `fedanon sdc recommend --from FILE` reads what -o wrote.
    """
    from fedanon.io.outputs import check_output
    from fedanon.report.drawing import PLOTS

    if measures is not None:
        warn_renamed("--measures", "--metrics")
        metrics = metrics or measures
    refuse_unknown(*(name for name in (risk, loss) if name is not None))
    check_output(output, inputs=source.inputs, endings=(".csv", ".json"), force=force)
    check_output(plot, inputs=source.inputs, endings=PLOTS, force=force)
    with audited(audit, "sdc compare") as entry:
        table = chosen_table(source.load(), columns, complete=complete, sample=sample)
        usual = usual_metrics(table)
        axes = risk or usual[0], loss or usual[1]
        maskings = plan(table, methods, sweeps, given, reverse_map=reverse_map, restricted=restricted)
        wanted = list(dict.fromkeys([*axes, *(metrics.split(",") if metrics else usual)]))
        rows, failures = run(table, maskings, wanted, seed)
        facts = {"n": len(table), "columns": [c.name for c in table.columns], "seed": seed, "failures": failures}
        written = _write(rows, facts, output, plot, axes)
        entry |= {**facts, "failures": len(failures), "written": [path.name for path in written]}
    if as_json:
        print_json({**facts, "rows": rows.to_dict("records")})
    else:
        _report(rows, facts, written)


def _write(
    rows: Any, facts: dict[str, Any], output: Path | None, plot: Path | None, axes: tuple[str, str]
) -> list[Path]:
    """Write and draw what was asked for; returns the files."""
    from fedanon.sdc.masking import write_comparison

    if output is not None:
        write_comparison(output, rows, facts)
    if plot is not None:
        draw_comparison(rows, *axes, plot)
    return [path for path in (output, plot) if path is not None]


def _report(rows: Any, facts: dict[str, Any], written: list[Path]) -> None:
    from fedanon.metrics import METRICS

    titles = [METRICS[name].title if name in METRICS else name for name in rows.columns]
    title = f"{facts['n']:,} rows, {len(facts['columns'])} columns: {', '.join(facts['columns'])}"
    print_table(title, titles, rows.itertuples(index=False))
    print_failures(facts["failures"])
    for path in written:
        console().print(f"Written: {path}")


# ---- the run, shared with `sdc recommend` --------------------------------------------------------


def chosen_table(table: Table, columns: str | None, *, complete: bool, sample: int) -> Table:
    """Return the table whose quasi-identifiers are exactly the columns to mask, all numeric or all categorical."""
    from fedanon.data.key_choice import complete_rows, numeric_quasi_identifiers, sample_of
    from fedanon.sdc.methods.pipeline import with_chosen

    names = [name.strip() for name in columns.split(",")] if columns else numeric_quasi_identifiers(table)
    if not names:
        raise ConfigError("The table has no numeric quasi-identifiers; name the columns to mask with --columns.")
    chosen = with_chosen(table, names)
    numeric = numeric_quasi_identifiers(chosen)
    if numeric and len(numeric) < len(names):
        other = [name for name in names if name not in numeric]
        raise ConfigError(f"Numbers and categories are compared apart. Not numeric: {', '.join(other)}.")
    chosen = complete_rows(chosen) if complete else chosen
    return sample_of(chosen, sample) if sample else chosen


def usual_metrics(table: Table) -> tuple[str, ...]:
    """Return the metrics for numbers or for categories; the first two are risk and loss."""
    from fedanon.sdc.masking import CATEGORY_METRICS, DEFAULT_METRICS

    return DEFAULT_METRICS if table.columns[0].values is not None else CATEGORY_METRICS


def plan(
    table: Table,
    methods: Sequence[str] | None,
    sweeps: Sequence[str] | None,
    given: str | None,
    *,
    reverse_map: bool,
    restricted: bool,
) -> list[Masking]:
    """Return every masking to run; reports what is wrong with a method or a value before anything runs."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.fields import build
    from fedanon.sdc.methods.conditional import ConditionalPerturbation
    from fedanon.sdc.sweeps import CATEGORY_SWEEPS, SWEEPS, maskings

    usual = SWEEPS if table.columns[0].values is not None else CATEGORY_SWEEPS
    values: dict[str, dict[str, Any]] = {name: {} for name in (methods or ([] if sweeps else usual))}
    for text in sweeps or []:
        for method, name, chosen in _parse_sweep(text, list(values)):
            values.setdefault(method, {})[name] = chosen
    for method in (method for method in values if given and issubclass(ANONYMIZERS[method], ConditionalPerturbation)):
        values[method] = {"given": given, **values[method]}
    found = maskings(table, values, _variants(reverse_map=reverse_map, restricted=restricted))
    for masking in found:
        build(ANONYMIZERS[masking.method], masking.settings)
    return found


def _variants(*, reverse_map: bool, restricted: bool) -> list[Variant]:
    from fedanon.sdc.sweeps import VARIANTS

    return [v for v in VARIANTS if (reverse_map or "reverse" not in v) and (restricted or "restricted" not in v)]


def _parse_sweep(text: str, named: list[str]) -> list[tuple[str, str, list[str]]]:
    """Return method, parameter and values; without a method, every named one that has the parameter."""
    from dataclasses import fields

    from fedanon.anonymizers import ANONYMIZERS

    head, equals, tail = text.partition("=")
    method, colon, name = head.rpartition(":")
    values = [value.strip() for value in tail.split(",")]
    if not equals or not name.strip() or not all(values) or (colon and not method.strip()):
        raise ConfigError("--sweep takes [METHOD:]NAME=V,V,..., such as additive_noise:c=0.01,0.1,0.5.")
    name = name.strip()
    targets = [method.strip()] if colon else named
    if not targets:
        raise ConfigError("--sweep names no method: write METHOD:NAME=V,V,..., or give --method.")
    owners = [m for m in targets if name in {entry.name for entry in fields(ANONYMIZERS[m])}]
    if not owners:
        raise ConfigError(f"The parameter {name!r} of --sweep belongs to none of: {', '.join(targets)}.")
    return [(owner, name, values) for owner in owners]


def run(table: Table, maskings: Sequence[Masking], metrics: Sequence[str], seed: int) -> tuple[pd.DataFrame, Any]:
    """Run all with a progress bar; return rows and failures."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fedanon.sdc.masking import compare_maskings

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(maskings) + 1)

        def show(masking: Masking) -> None:
            progress.update(task, advance=1, description=f"{masking.method} {masking.varied}")

        return compare_maskings(table, maskings, metrics, seed, show)


def refuse_unknown(*metrics: str) -> None:
    """Reject a metric that does not exist, and one of which less is not better."""
    from fedanon.metrics import METRICS

    for name in metrics:
        if METRICS[name].better != "lower":
            raise ConfigError(f"Lower is not better for {name!r}, so it is neither a risk nor a loss.")


def print_failures(failures: dict[str, str]) -> None:
    """Print what could not run, with the reason."""
    for what, reason in failures.items():
        console().print(f"Not run: {what}: {reason}")


# ---- the plot ------------------------------------------------------------------------------------


def draw_comparison(rows: pd.DataFrame, risk: str, loss: str, path: Path, *, limit: float | None = None) -> None:
    """Draw all points, one line per method and variant, and the front; with ``limit`` also the choices within it.

    Colors and markers tell methods apart, dashes their variants.
    """
    from fedanon.report.charts import LINE, MAJORITY, REFERENCE, Panel, Series, spans_decades
    from fedanon.report.drawing import write_plot
    from fedanon.report.glossary import meaning
    from fedanon.sdc.pareto import choose, pareto_front
    from fedanon.sdc.sweeps import VARIANTS

    known = rows.dropna(subset=[risk, loss])
    styles = {method: style for style, method in enumerate(dict.fromkeys(known["method"]))}

    def series(label: str, style: int, points: pd.DataFrame, texts: Sequence[str] = (), form: Form = "line") -> Series:
        x, y = (tuple(map(float, points[name])) for name in (loss, risk))
        return Series(label=label, style=style, x=x, y=y, texts=tuple(texts), form=form)

    dashes = {str(variant): place for place, variant in enumerate(VARIANTS) if variant in set(known["variant"])}
    drawn = [
        replace(series(str(method), styles[method], points), dash=dashes[str(variant)])
        for (method, variant), points in known.groupby(["method", "variant"], sort=False)
    ]
    if len(dashes) > 1:
        drawn += [Series(label=name, style=LINE, x=(), y=(), dash=place) for name, place in dashes.items()]
    front = known[pareto_front(known[risk], known[loss])].sort_values([risk, loss])
    drawn.append(series("Pareto front", MAJORITY, front))
    if limit is not None:
        choices = choose(known[risk], known[loss], limit=limit)
        chosen = known.iloc[[choice.index for choice in choices]]
        drawn.append(series("recommended", REFERENCE, chosen, [choice.goal for choice in choices], "points"))
        drawn.append(Series(label=f"limit {limit:g}", style=len(styles), x=(0.0,), y=(limit,), form="level"))
    log = spans_decades([value for value in known[loss] if value > 0])
    panel = Panel(
        title="Risk against loss; towards the lower left is better",
        x_label=f"information loss: {meaning(loss).title}",
        y_label=f"risk: {meaning(risk).title}",
        series=tuple(drawn),
        x_log=log,
        large=True,
    )
    write_plot([panel], path)
