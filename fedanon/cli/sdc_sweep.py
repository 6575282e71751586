"""What `sdc compare` and `sdc recommend` share: which columns, which methods at which values, and the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli.output import console
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.data.table import Table
    from fedanon.harness.masking import Masking
    from fedanon.harness.sweeps import Variant

Columns = Annotated[
    str | None,
    typer.Option("--columns", help="Numeric columns a,b,c to mask; the numeric quasi-identifiers by default."),
]
Methods = Annotated[
    list[str] | None, typer.Option("--method", help="A method to compare; may be repeated. All for numbers by default.")
]
Sweeps = Annotated[
    list[str] | None,
    typer.Option("--sweep", metavar="[METHOD:]NAME=V,V,...", help="Values of a parameter, such as c=0.01,0.1,0.5."),
]
ReverseMap = Annotated[
    bool, typer.Option("--reverse-map", help="Also with the original values put into the new order.")
]
Restricted = Annotated[bool, typer.Option("--restricted", help="Also with zeros kept and nothing negative.")]
Complete = Annotated[bool, typer.Option("--complete", help="Leave out rows that lack one of the columns.")]
Sample = Annotated[int, typer.Option(help="Compare on this many rows drawn at random; 0 takes all.", min=0)]
RiskMetric = Annotated[str, typer.Option("--risk", metavar="METRIC", help="Measure of risk.")]
LossMetric = Annotated[str, typer.Option("--loss", metavar="METRIC", help="Measure of loss.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Also draw risk against loss into this file (PNG or SVG).")]


def chosen_table(table: Table, columns: str | None, *, complete: bool, sample: int) -> Table:
    """The table whose quasi-identifiers are exactly the numeric columns to mask."""
    from fedanon.data.key_choice import complete_rows, numeric_quasi_identifiers, sample_of, with_quasi_identifiers

    names = [name.strip() for name in columns.split(",")] if columns else numeric_quasi_identifiers(table)
    if not names:
        raise ConfigError("The table has no numeric quasi-identifiers; name the columns to mask with --columns.")
    chosen = with_quasi_identifiers(table, names)
    other = [name for name in names if name not in numeric_quasi_identifiers(chosen)]
    if other:
        raise ConfigError(f"Only numbers can be compared so. Not numeric: {', '.join(other)}.")
    chosen = complete_rows(chosen) if complete else chosen
    return sample_of(chosen, sample) if sample else chosen


def plan(
    table: Table, methods: Sequence[str] | None, sweeps: Sequence[str] | None, *, reverse_map: bool, restricted: bool
) -> list[Masking]:
    """Every masking to run; what is wrong with a method or a value is told before anything runs."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.harness.sweeps import SWEEPS, maskings
    from fedanon.parameters import build

    given: dict[str, dict[str, Any]] = {name: {} for name in (methods or ([] if sweeps else SWEEPS))}
    for text in sweeps or []:
        for method, name, values in _parse_sweep(text, list(given)):
            given.setdefault(method, {})[name] = values
    found = maskings(table, given, _variants(reverse_map=reverse_map, restricted=restricted))
    for masking in found:
        build(ANONYMIZERS[masking.method], masking.settings)
    return found


def _variants(*, reverse_map: bool, restricted: bool) -> list[Variant]:
    from fedanon.harness.sweeps import VARIANTS

    return [v for v in VARIANTS if (reverse_map or "reverse" not in v) and (restricted or "restricted" not in v)]


def _parse_sweep(text: str, named: list[str]) -> list[tuple[str, str, list[str]]]:
    """Method, parameter and values; without a method, every named one that has the parameter."""
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


def run(table: Table, maskings: Sequence[Masking], measures: Sequence[str], seed: int) -> tuple[pd.DataFrame, Any]:
    """Run all with a progress bar; rows and failures."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fedanon.harness.masking_comparison import compare_maskings

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(maskings) + 1)

        def show(masking: Masking) -> None:
            progress.update(task, advance=1, description=f"{masking.method} {masking.varied}")

        return compare_maskings(table, maskings, measures, seed, show)


def refuse_unknown(*metrics: str) -> None:
    """The registry's message for a metric that does not exist, and for one of which less is not better."""
    from fedanon.metrics import METRICS

    for name in metrics:
        if METRICS[name].better != "lower":
            raise ConfigError(f"Of the metric {name!r} lower is not better, so it is neither a risk nor a loss.")


def tell_failures(failures: dict[str, str]) -> None:
    """What could not run, with the reason."""
    for what, reason in failures.items():
        console().print(f"Not run: {what}: {reason}")
