"""`fedanon experiment`: run a grid of cells from one TOML file, look at its numbers, compare them with others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.experiment_run import choose_files, results_folder, run, status
from fedanon.cli.output import console, print_json, print_lines, print_markdown, print_table
from fedanon.errors import ConfigError
from fedanon.fields import warn_renamed

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.harness.checking import ExperimentCheck

#: coordinates a label stands for
HIDDEN = ("grid", "task", "method", "settings")
app = typer.Typer(help="Reproduce tables and figures: one TOML file, one command.", no_args_is_help=True)
app.command()(run)
app.command()(status)

Results = Annotated[Path, typer.Argument(help="A folder of results, or the experiment's TOML file.")]


@app.command("list")
def list_experiments(
    folder: Annotated[Path, typer.Argument(help="Folder with experiments.")] = Path("experiments"),
    as_json: options.Json = False,
) -> None:
    """The experiments of a folder: what they are, how many cells, how many are finished."""
    from fedanon.harness.experiment import read_experiment
    from fedanon.harness.restoring import finished_cells

    rows = []
    for path in sorted(folder.glob("*.toml")):
        experiment = read_experiment(path)
        cells = len({cell.key for cell in experiment.cells})
        done = len(finished_cells(experiment, results_folder(path)))
        rows.append({"name": experiment.name, "title": experiment.title, "cells": cells, "done": done})
    if as_json:
        print_json(rows)
        return
    print_table(
        f"{len(rows)} experiments in {folder}", ["name", "title", "cells", "done"], [list(r.values()) for r in rows]
    )


@app.command("new")
@options.takes_table_source
def new(
    source: options.TableSource,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The new experiment; NAME_experiment.toml by default.")
    ] = None,
    partition: Annotated[str | None, options.setting_option("partition")] = None,
    nodes: Annotated[int, options.setting_option("nodes")] = 5,
    force: options.Force = False,
) -> None:
    """Write a commented experiment for your own table, ready to run."""
    from fedanon.federated.sources import default_partition
    from fedanon.harness.experiment import parse_experiment
    from fedanon.harness.own_data import new_experiment
    from fedanon.io.atomic import atomic_write
    from fedanon.io.outputs import check_output

    if source.schema is None:
        raise ConfigError("An experiment needs --schema FILE; `fedanon schema infer` proposes one.")
    table, data = source.load(), source.source
    table.schema.refuse_undecided()
    file = output or Path(f"{data.name}_experiment.toml")
    check_output(file, inputs=data.inputs, endings=(".toml",), force=force)
    divided = partition or default_partition(data.to_settings())
    text = new_experiment(data, table.schema, file.parent.absolute(), partition=divided, nodes=nodes)
    parse_experiment(text, name=file.stem, folder=file.parent)
    atomic_write(file, text)
    console().print(f"Written: {file}. Next: fedanon experiment run {file}")


@app.command()
def show(
    results: Results,
    metrics: Annotated[str | None, typer.Option(help="Metrics a,b,c, or `all`; the main ones by default.")] = None,
    grid: Annotated[str | None, typer.Option(help="Only this grid.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="Only this k, and methods without k.")] = None,
    by: Annotated[str | None, typer.Option(help="One metric in a column per value of this coordinate, as `k`.")] = None,
    lost: Annotated[bool, typer.Option("--lost", help="Show differences from the baseline, seed by seed.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    as_json: options.Json = False,
    measures: Annotated[str | None, typer.Option(hidden=True, help="Former name of --metrics.")] = None,
) -> None:
    """Show the numbers of an experiment: means over seeds with 95 % intervals."""
    from fedanon.harness.frames import against_baseline, summary, wide
    from fedanon.harness.result_set import read_results
    from fedanon.report.grouping import with_series
    from fedanon.report.tables import key_metrics

    if measures is not None:
        warn_renamed("--measures", "--metrics")
        metrics = measures
    found = read_results(_existing(results))
    frame = _only(found.results, "grid", grid)
    named = metrics.split(",") if metrics not in (None, "all") else []
    frame = _only(frame, "measure", *named) if named else frame
    if k is not None:
        frame = frame[frame["k"].isna() | frame["k"].eq(k).fillna(False)]
    if lost:
        if not found.manifest["baseline"]:
            raise ConfigError("The experiment names no baseline.")
        frame = against_baseline(frame, found.manifest["baseline"])
    # a label that stands for several settings is shown with them
    table = summary(frame.assign(label=with_series(frame)["series"]))
    if as_json:
        print_json([dict(zip(table.columns, row, strict=True)) for row in _plain(table)])
        return
    tables: dict[str, pd.DataFrame] = {}
    for name, part in table.groupby("grid", sort=False):
        everything = list(dict.fromkeys(part["measure"]))
        wanted = named or (everything if metrics == "all" else key_metrics(part))
        shown = _readable(wide(part[part["measure"].isin(wanted)]), wanted, by)
        tables[str(name)] = shown if by is None else _spread(shown, wanted, by)
    if markdown:
        _print_markdown(tables)
        return
    for name, shown in tables.items():
        print_frame(f"{found.manifest['title']}: {name}{', differences to the baseline' * lost}", shown)


def _print_markdown(tables: Mapping[str, pd.DataFrame]) -> None:
    """One table per set of columns; where there are several grids, the first column names them."""
    merged: dict[tuple[str, ...], list[list[Any]]] = {}
    for name, shown in tables.items():
        several = len(tables) > 1
        columns = (*["grid"] * several, *shown.columns)
        merged.setdefault(columns, []).extend([*[name] * several, *row] for row in _plain(shown))
    for number, (columns, rows) in enumerate(merged.items()):
        if number:
            print_lines([""])  # or the tables would be read as one
        print_markdown(columns, rows)


def _readable(table: pd.DataFrame, metrics: list[str], kept: str | None = None) -> pd.DataFrame:
    """The metrics in the order asked for, and of the coordinates those that tell one row from another, or are kept."""
    there = [name for name in metrics if name in table and table[name].notna().any()]
    place = [name for name in table.columns if name not in metrics and name not in HIDDEN]
    return table[[n for n in place if n in ("label", kept) or len(set(table[n].astype(str))) > 1] + there]


def _spread(table: pd.DataFrame, metrics: list[str], by: str) -> pd.DataFrame:
    """A column for every value of a coordinate, which holds the one metric."""
    import pandas as pd

    if len(metrics) > 1:
        raise ConfigError(f"--by spreads one metric, and {len(metrics)} were asked for: name it with --metrics.")
    if by not in table or by in ("label", *metrics):
        known = ", ".join(name for name in table.columns if name not in ("label", *metrics))
        raise ConfigError(f"--by {by}: the rows have no such coordinate. Known: {known}.")
    place = [name for name in table.columns if name not in (by, *metrics)]
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for found in table.to_dict("records"):
        at = tuple(str(found[name]) for name in place)
        row = rows.setdefault(at, {name: found[name] for name in place})
        value = found[by]
        row[f"no {by}" if pd.isna(value) else value if isinstance(value, str) else f"{by}={value}"] = found[metrics[0]]
    first = list(dict.fromkeys(at[0] for at in rows))
    return pd.DataFrame([rows[at] for at in sorted(rows, key=lambda at: first.index(at[0]))])


@app.command()
def diff(
    results: Results,
    other: Annotated[
        Path | None, typer.Argument(help="Another folder of results; by default the published numbers.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Relative difference that is tolerated between two result sets.", min=0)
    ] = 0.0,
    everything: Annotated[bool, typer.Option("--all", help="Also list what agrees.")] = False,
    as_json: options.Json = False,
) -> None:
    """What differs from the published numbers, or between two result sets, beyond tolerance.

    Ends with code 1 if something does.
    """
    from fedanon.harness.comparison import between
    from fedanon.harness.result_set import read_results

    ours = read_results(_existing(results))
    if other is None:
        table = ours.comparison
        if table.empty:
            raise ConfigError(f"The experiment {ours.name} names no published numbers.")
        differs = table["within"].map(lambda within: within is False or str(within) == "False")
        what = f"{int(differs.sum())} of {int(table['within'].notna().sum())} judged numbers differ beyond tolerance"
        table = (table if everything else table[differs]).drop(columns=["source", "sd"])
    else:
        table = between(ours.results, read_results(_existing(other)).results, tolerance=tolerance)
        differs = table["in"].notna()
        what = f"{len(table)} places differ"
    if as_json:
        print_json([dict(zip(table.columns, row, strict=True)) for row in _plain(table)])
    elif len(table):
        print_frame(what, table)
    else:
        console().print(f"{what}.")
    if differs.any():
        raise typer.Exit(1)


@app.command()
def check(
    files: Annotated[list[Path] | None, typer.Argument(help="Experiments (TOML).")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every experiment of --folder.")] = False,
    folder: Annotated[Path, typer.Option(help="Where --all looks.")] = Path("experiments"),
    write: Annotated[
        bool, typer.Option("--write", help="Store findings and comparison as the file states them now.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate every finding and every published number on the stored results; code 4 if one does not hold."""
    from fedanon.harness.checking import check_experiment
    from fedanon.harness.experiment import read_experiment

    chosen = choose_files(files, everything, folder)
    checks = [check_experiment(read_experiment(file), results_folder(file), store=write) for file in chosen]
    if as_json:
        print_json([one.to_dict() for one in checks])
    else:
        _print_checks(checks)
    if not all(one.holds for one in checks):
        raise typer.Exit(4)  # as for a promise that does not hold


@app.command()
def summary(
    folder: Annotated[Path, typer.Argument(help="Folder with experiments.")] = Path("experiments"),
    name: Annotated[str | None, typer.Option(help="Only what this experiment found.")] = None,
) -> None:
    """Markdown: all experiments in a table, or what one of them found, both from stored results."""
    from fedanon.harness.checking import check_experiment
    from fedanon.harness.experiment import read_experiment

    if name is not None:
        experiment = read_experiment(folder / f"{name}.toml")
        found = check_experiment(experiment, results_folder(folder / f"{name}.toml"))
        print_lines([f"`{name}`: {' '.join(experiment.about.split())}", ""])
        print_lines(f"- {text}" for text in [*(one.text for one in found.findings), *experiment.remarks])
        return
    rows = []
    for file in sorted(folder.glob("*.toml")):
        experiment, results = read_experiment(file), results_folder(file)
        if results.exists():
            found = check_experiment(experiment, results)
            met, judged = (sum(p.reproduced for p in found.published), sum(p.judged for p in found.published))
            rows.append(
                [f"`{experiment.name}`", experiment.title, found.finished, f"{met} of {judged}" if judged else ""]
            )
    print_markdown(["experiment", "what", "cells", "published numbers within tolerance"], rows)


def _print_checks(checks: list[ExperimentCheck]) -> None:
    rows = []
    for one in checks:
        held = f"{sum(f.holds for f in one.findings)} of {len(one.findings)}"
        numbers = [sum(getattr(p, name) for p in one.published) for name in ("reproduced", "differ", "not_run")]
        rows.append([one.name, held, *(numbers if one.published else ["", "", ""]), f"{one.finished} of {one.cells}"])
    columns = ["experiment", "findings that hold", "reproduced", "differ", "not run", "cells"]
    print_table("Findings and published numbers", columns, rows)
    out = console()
    for one in checks:
        for finding in one.findings:
            if not finding.holds:
                out.print(f"{one.name}: does not hold: {finding.text}\n  {'; '.join(finding.failed)}", markup=False)
        for published in one.published:
            if published.differ:
                reason = published.why if published.holds else f"{published.expected_to_differ} are explained"
                out.print(f"{one.name}: {published.differ} of {published.metric} differ: {reason}", markup=False)
            elif not published.holds:
                out.print(
                    f"{one.name}: {published.metric} agrees everywhere, but its file says otherwise.", markup=False
                )


def print_frame(title: str, frame: pd.DataFrame) -> None:
    """A table of numbers for people; columns that say nothing are left out."""
    frame = frame.dropna(axis=1, how="all")
    print_table(title, list(frame.columns), _plain(frame))


def _plain(frame: pd.DataFrame) -> list[list[Any]]:
    """Plain numbers of Python, and None where there is nothing."""
    rows: list[list[Any]] = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return rows


def _existing(results: Path) -> Path:
    return results_folder(results) if results.suffix == ".toml" else results


def _only(frame: pd.DataFrame, column: str, *values: str | None) -> pd.DataFrame:
    wanted = [value for value in values if value is not None]
    if not wanted:
        return frame
    unknown = sorted(set(wanted) - set(frame[column]))
    if unknown:
        known = ", ".join(map(str, frame[column].unique()))
        name = "metric" if column == "measure" else column  # the column keeps the name of stored results
        raise ConfigError(f"The results have no {name} {', '.join(unknown)}. Known: {known}.")
    return frame[frame[column].isin(wanted)]
