"""`fedanon experiment`: run a grid of cells from one TOML file, look at its numbers, compare them with others."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_lines, print_markdown, print_table
from fedanon.errors import ConfigError
from fedanon.fields import warn_renamed

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.harness.checking import ExperimentCheck
    from fedanon.harness.experiment import Experiment
    from fedanon.harness.runner import Run

#: coordinates a label stands for
HIDDEN = ("grid", "task", "method", "settings")
#: exit code of what Ctrl-C ended, as shells have it
INTERRUPTED = 130

app = typer.Typer(help="Reproduce tables and figures: one TOML file, one command.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The experiment (TOML).")]
Folder = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder of the results; results/NAME beside the file by default.")
]
Results = Annotated[Path, typer.Argument(help="A folder of results, or the experiment's TOML file.")]


@app.command("list")
def list_experiments(
    folder: Annotated[Path, typer.Argument(help="Folder with experiments.")] = Path("experiments"),
    as_json: options.Json = False,
) -> None:
    """The experiments of a folder: what they are, how many cells, how many are finished."""
    from fedanon.harness.experiment import read_experiment

    rows = []
    for path in sorted(folder.glob("*.toml")):
        experiment = read_experiment(path)
        finished, _ = _progress(experiment, _results_folder(path, None))
        rows.append({"name": experiment.name, "title": experiment.title, "cells": _size(experiment), "done": finished})
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
    """Write a commented experiment about an own table, ready to be run."""
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
def run(
    file: File,
    output: Folder = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.", min=1)] = None,
    engine: Annotated[
        str, typer.Option(help="processes (this machine) or ray (a cluster, by RAY_ADDRESS).")
    ] = "processes",
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute again what is finished.")] = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Run an experiment. A killed run goes on where it stopped; a finished one is instant.

    Ctrl-C ends running cells at once and writes the tables of those that are finished; the exit code is then 130.
    """
    from fedanon.harness.workers import stop_requests

    if engine not in ("processes", "ray"):
        raise ConfigError("--engine takes processes or ray.")
    with stop_requests() as stopped:
        from fedanon.harness.experiment import read_experiment  # takes a moment, in which Ctrl-C may come

        experiment = read_experiment(file)
        folder = _results_folder(file, output)
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"The folder of results {folder} is a file; name a folder.")
        with audited(audit, "experiment run") as entry:
            done = _run_with_progress(experiment, folder, workers=workers, engine=engine, fresh=fresh, stopped=stopped)
            entry |= {"experiment": experiment.name, "folder": folder.name, "interrupted": done.interrupted}
            entry |= {"computed": done.computed, "kept": done.kept, "failures": len(done.failures)}
        if as_json:
            print_json({"experiment": experiment.name, "folder": str(folder), **vars(done)})
        if done.interrupted:
            _tell_interrupted(experiment, folder, fresh=fresh)
        elif not as_json:
            _tell(done, folder)
    if done.interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is written; one more Ctrl-C would only spoil the way out
        raise typer.Exit(INTERRUPTED)
    if done.failures and not done.computed and not done.kept:
        raise typer.Exit(1)


@app.command()
def status(file: File, output: Folder = None, as_json: options.Json = False) -> None:
    """How much of an experiment is finished, and what failed."""
    from fedanon.errors import DataError
    from fedanon.harness.experiment import read_experiment
    from fedanon.harness.provenance import code_hash
    from fedanon.harness.result_set import read_manifest

    experiment = read_experiment(file)
    folder = _results_folder(file, output)
    finished, by_other_code = _progress(experiment, folder)
    try:
        failures = read_manifest(folder)["failures"]
    except DataError:
        failures = []
    facts = {"experiment": experiment.name, "cells": _size(experiment), "finished": finished}
    facts |= {"by_other_code": by_other_code, "code": code_hash(), "failures": failures}
    if as_json:
        print_json(facts)
        return
    out = console()
    out.print(f"{experiment.name}: {finished} of {facts['cells']} cells finished.")
    if by_other_code:
        out.print(f"{by_other_code} of them were computed by other code than this; `run --fresh` computes them again.")
    _list_failures(failures)


@app.command()
def show(
    results: Results,
    metrics: Annotated[str | None, typer.Option(help="These metrics a,b,c, or `all`; else the main ones.")] = None,
    grid: Annotated[str | None, typer.Option(help="Only this grid.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="Only this k, and methods without k.")] = None,
    lost: Annotated[bool, typer.Option("--lost", help="Differences to the baseline, seed by seed.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a Markdown table.")] = False,
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
    for name, part in table.groupby("grid", sort=False):
        everything = list(dict.fromkeys(part["measure"]))
        wanted = named or (everything if metrics == "all" else key_metrics(part))
        shown = _readable(wide(part[part["measure"].isin(wanted)]), wanted)
        if markdown:
            print_markdown(list(shown.columns), _plain(shown))
        else:
            print_frame(f"{found.manifest['title']}: {name}{', differences to the baseline' * lost}", shown)


def _readable(table: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """The metrics in the order asked for, and of the coordinates those that tell one row from another."""
    there = [name for name in metrics if name in table and table[name].notna().any()]
    place = [name for name in table.columns if name not in metrics and name not in HIDDEN]
    return table[[n for n in place if n == "label" or len(set(table[n].astype(str))) > 1] + there]


@app.command()
def diff(
    results: Results,
    other: Annotated[
        Path | None, typer.Argument(help="Another folder of results; the published numbers if left out.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Share by which two result sets may differ.", min=0)] = 0.0,
    everything: Annotated[bool, typer.Option("--all", help="Also what agrees.")] = False,
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
    from fedanon.harness.result_set import refresh_findings

    chosen = sorted(folder.glob("*.toml")) if everything else files or []
    if not chosen:
        raise ConfigError("Name experiments (TOML), or give --all.")
    checks = []
    for file in chosen:
        experiment, results = read_experiment(file), _results_folder(file, None)
        if not results.exists() and everything:
            continue  # one that is only run, such as that of the tests
        checks.append(check_experiment(experiment, results))
        if write:
            refresh_findings(experiment, results)
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
        found = check_experiment(experiment, _results_folder(folder / f"{name}.toml", None))
        print_lines(f"- {text}" for text in [*(one.text for one in found.findings), *experiment.remarks])
        return
    rows = []
    for file in sorted(folder.glob("*.toml")):
        experiment, results = read_experiment(file), _results_folder(file, None)
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


def _results_folder(file: Path, output: Path | None) -> Path:
    return output or file.parent / "results" / file.stem


def _existing(results: Path) -> Path:
    return _results_folder(results, None) if results.suffix == ".toml" else results


def _size(experiment: Experiment) -> int:
    return len({cell.key for cell in experiment.cells})


def _progress(experiment: Experiment, folder: Path) -> tuple[int, int]:
    """Numbers of finished cells, and of those that other code computed."""
    from fedanon.harness.cells import CellStore
    from fedanon.harness.provenance import code_hash

    store = CellStore(folder)
    found = [store.read(key) for key in {cell.key for cell in experiment.cells}]
    codes = [stored.code for stored in found if stored is not None]
    return len(codes), sum(code != code_hash() for code in codes)


def _run_with_progress(experiment: Experiment, folder: Path, **how: Any) -> Run:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fedanon.harness.runner import run as start

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=None)
        total = _size(experiment)
        finished = 0 if how["fresh"] else _progress(experiment, folder)[0]
        progress.update(task, total=total, completed=finished)

        def show_cell(cell: Any, result: Any) -> None:
            progress.update(task, advance=1, description=f"{cell.describe()}{': ' * bool(result.error)}{result.error}")

        return start(experiment, folder, on_cell=show_cell, **how)


def _tell(done: Run, folder: Path) -> None:
    from fedanon.harness.result_set import read_results

    out = console()
    out.print(
        f"{done.computed} cells computed in {done.seconds:.0f} s, {done.kept} finished before, "
        f"{len(done.failures)} failed, of {done.total}."
    )
    found = read_results(folder)
    _list_failures(found.manifest["failures"])
    judged = found.comparison["within"].dropna().astype(str) if len(found.comparison) else None
    if judged is not None:
        out.print(f"{(judged == 'True').sum()} of {len(judged)} published numbers agree within their tolerance.")
    out.print(f"Results: {folder}. Next: fedanon experiment show {folder}; fedanon report {folder} -o report.html")


def _tell_interrupted(experiment: Experiment, folder: Path, *, fresh: bool) -> None:
    """One line for people; standard output may be read by a program."""
    finished, _ = _progress(experiment, folder)
    command = "the same command without --fresh" if fresh else "the same command"
    typer.echo(
        f"Interrupted: {finished} of {_size(experiment)} cells are finished and in the tables of {folder}; "
        f"{command} goes on with the others.",
        err=True,
    )


def _list_failures(failures: list[dict[str, Any]]) -> None:
    for failure in failures[:20]:
        console().print(f"Failed: {failure['what']}: {failure['reason']}")
    if len(failures) > 20:
        console().print(f"and {len(failures) - 20} more; all are in the manifest.")


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
