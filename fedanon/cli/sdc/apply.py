"""`fedanon sdc apply`: several methods in a row on one table; the last one can be undone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.anonymize import conclude_release, logged
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_conclusion, print_json, print_table
from fedanon.cli.publishing import PublishingSource, takes_publishing_source, written_lines
from fedanon.cli.sdc.measured import measured, print_measured, refuse_unknown_metrics
from fedanon.errors import ConfigError, DataError
from fedanon.fields import listed

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.release.release import Release
    from fedanon.sdc.methods.pipeline import Pipeline
    from fedanon.sdc.variables import Variables

Steps = Annotated[
    list[str] | None,
    typer.Option(
        "--step",
        metavar="METHOD[:COLUMN,...][,NAME=VALUE,...]",
        help="A method with the columns it changes and its parameters; repeat the option for a chain.",
    ),
]
Manifest = Annotated[
    Path | None, typer.Option("--from", metavar="MANIFEST", help="Start from the steps and the seed of this manifest.")
]


Keys = Annotated[
    str | None,
    typer.Option("--keys", help="Key columns a,b,c: what an attacker may know; the quasi-identifiers by default."),
]
Numbers = Annotated[
    str | None,
    typer.Option(
        "--numbers", help="Numeric columns a,b,c to mask, which are not keys; by default those named in steps."
    ),
]
Categories = Annotated[
    str | None, typer.Option("--pram", help="Categorical columns a,b,c to randomize, which are not keys; as --numbers.")
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", help="Plot original against released numbers (PNG or SVG). It shows originals: do not share it."
    ),
]
Metrics = Annotated[
    str | None, typer.Option(help="Also compute metrics a,b,c, before and after (see sdc_metrics in the docs).")
]


@takes_publishing_source
def apply(
    source: PublishingSource,
    steps: Steps = None,
    origin: Manifest = None,
    undo: Annotated[bool, typer.Option("--undo", help="Drop the last step of --from.")] = False,
    keys: Keys = None,
    numbers: Numbers = None,
    pram: Categories = None,
    complete: Annotated[bool, typer.Option("--complete", help="Drop rows that lack a number to mask.")] = False,
    metrics: Metrics = None,
    plot: Plot = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness; 0, or that of --from.", min=0)] = None,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Run methods one after the other, such as --step pram:sex,race,keep=0.9 --step egadp:income.

    Any method of `fedanon methods` can be a step. A column that is not a quasi-identifier is masked from the step on
    that names it; it is no key. Risk by the keys and loss are reported beside those of the original. With -o the
    release is written with a manifest of the chain; --from MANIFEST --undo makes the release again, on the same data,
    as it was before the last step.
    """
    from fedanon.io.manifest import file_sha256
    from fedanon.io.outputs import check_output
    from fedanon.report.drawing import PLOTS

    source.check_outputs(origin)
    check_output(plot, inputs=source.inputs, endings=PLOTS, force=source.force)
    before = _read_manifest(origin) if origin is not None else None
    pipeline = _pipeline(before, steps or [], _variables(keys, numbers, pram), undo=undo)
    wanted = listed(metrics or "")
    refuse_unknown_metrics(wanted)
    with audited(audit, "sdc apply") as entry:
        table, dialect = source.load_with_dialect()
        table = _complete(pipeline, table) if complete else table
        _refuse_other_data(before, table)
        release, result = _run(pipeline, table, _seed(before, seed), wanted)
        conclusion = conclude_release(_by_keys(release, table), table)
        entry |= {"steps": result["steps"], "seed": result["seed"], **logged(release, result)}
        entry["conclusion"] = conclusion.level
        if source.output is not None:
            result |= source.write(release, pipeline.masked_table(table), dialect)
            entry |= {"output": source.output.name, "output_sha256": file_sha256(source.output)}
        if plot is not None:
            result["plot"] = _draw(pipeline, table, release, plot)
    if as_json:
        print_json(result | {"conclusion": conclusion.to_dict()})
    else:
        _report(result)
        print_conclusion(conclusion)


def _by_keys(release: Release, table: Table) -> Release:
    """Return the release with its keys alone as quasi-identifiers, if it has any: classes are theirs."""
    from fedanon.sdc.variables import part_of_release, variables_of

    lists = variables_of(release)
    return part_of_release(release, lists.keys, table.schema) if lists is not None and lists.keys else release


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return the provenance in a manifest."""
    try:
        provenance = json.loads(path.read_text(encoding="utf-8"))["provenance"]
        if not isinstance(provenance, dict) or not isinstance(provenance["seed"], int):
            raise TypeError
    except FileNotFoundError:
        raise DataError(f"The manifest {path} does not exist.") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"The manifest {path.name} cannot be read.") from None
    return provenance


def _variables(keys: str | None, numbers: str | None, pram: str | None) -> Variables:
    from fedanon.sdc.variables import Variables

    return Variables(*(tuple(listed(names or "")) for names in (keys, numbers, pram)))


def _pipeline(before: dict[str, Any] | None, steps: list[str], variables: Variables, *, undo: bool) -> Pipeline:
    from dataclasses import replace

    from fedanon.sdc.methods.pipeline import Pipeline
    from fedanon.sdc.methods.step import parse_step

    added = tuple(parse_step(text) for text in steps)
    if before is None:
        if undo:
            raise ConfigError("--undo needs --from MANIFEST.")
        if not added:
            raise ConfigError("Give at least one --step, or --from MANIFEST.")
        return Pipeline(added, variables)
    if variables.named:
        raise ConfigError(
            "--keys, --numbers and --pram are those of --from: the earlier steps would come out otherwise."
        )
    earlier = Pipeline.from_provenance(before)
    if not undo:
        return replace(earlier, steps=(*earlier.steps, *added))
    # the only step may be replaced by another, but not by nothing
    return replace(earlier, steps=(*earlier.steps[:-1], *added)) if added else earlier.without_last()


def _complete(pipeline: Pipeline, table: Table) -> Table:
    """Return the rows in which no numeric column that is masked or a key is missing."""
    import numpy as np

    from fedanon.data.key_choice import lacking_numbers

    lacking = lacking_numbers(pipeline.masked_table(table))
    if lacking.all():
        raise DataError("Every row lacks one of the numbers to mask.")
    return table.select_rows(np.flatnonzero(~lacking))


def _refuse_other_data(before: dict[str, Any] | None, table: Table) -> None:
    """Reject a table other than the one the chain was made from."""
    if before is not None and before.get("data_sha256") != table.sha256:
        raise DataError("The table is not the one the manifest describes (its data or schema differ).")


def _seed(before: dict[str, Any] | None, given: int | None) -> int:
    if before is None:
        return given or 0
    if given is not None:
        raise ConfigError("--seed cannot be changed with --from: the earlier steps would come out differently.")
    return int(before["seed"])


def _run(pipeline: Pipeline, table: Table, seed: int, metrics: list[str]) -> tuple[Release, dict[str, Any]]:
    """Run the steps and measure the release; ``seconds`` is the time of the steps alone."""
    from fedanon.cli.runs import measure
    from fedanon.sdc.measures import Measures

    start = time.perf_counter()
    release = pipeline.anonymize(table, rng=seed)
    seconds = time.perf_counter() - start
    provenance = release.provenance
    measures = Measures.of_chain(pipeline, table, release)
    return release, {
        "method": provenance.method,
        "steps": provenance.parameters["steps"],
        "variables": provenance.parameters["variables"]["used"],
        "masked": provenance.parameters["masked"],
        **measure(measures.table, release),
        **measured(measures, metrics),
        "notes": list(provenance.notes),
        "seed": seed,
        "version": provenance.version,
        "seconds": round(seconds, 4),
    }


def _draw(pipeline: Pipeline, table: Table, release: Release, path: Path) -> str:
    """Draw originals against released values of the numbers that were masked, or else of all numeric columns."""
    from fedanon.report.drawing import write_plot
    from fedanon.report.scatter import scatter_panels
    from fedanon.sdc.measures import Measures

    panels = scatter_panels(*Measures.of_chain(pipeline, table, release).numbers)
    if not panels:
        raise ConfigError("--plot draws numbers; the release has none, or fewer than two rows.")
    write_plot(panels, path)
    return str(path)


def _report(result: dict[str, Any]) -> None:
    from fedanon.metrics import METRICS

    rows = [
        (i + 1, step["method"], ", ".join(step["columns"]) or "all that fit", _changed(step))
        for i, step in enumerate(result["steps"])
    ]
    print_table(f"Steps on {result['n']:,} rows", ["step", "method", "columns", "cells changed"], rows)
    print_measured(result)
    metrics = [(METRICS[name].title, value) for name, value in result.items() if name in METRICS]
    print_table("The release, every changed column being a quasi-identifier", ["metric", "value"], metrics)
    out = console()
    for note in result["notes"]:
        out.print(f"Note: {note}")
    for line in written_lines(result):
        out.print(line)
    if "plot" in result:
        out.print(f"Written: {result['plot']}. It shows original values: do not publish it.")


def _changed(step: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in step["changed"].items()) or "none"
