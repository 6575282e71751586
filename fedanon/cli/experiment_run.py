"""`fedanon experiment run` and `status`: compute what is missing or stale, of one experiment or of all."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import INTERRUPTED, options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import ConfigError, DataError

if TYPE_CHECKING:
    from fedanon.harness.experiment import Experiment
    from fedanon.harness.runner import Run
    from fedanon.harness.workers import Stopped

Files = Annotated[list[Path] | None, typer.Argument(help="Experiments (TOML).")]
Everything = Annotated[bool, typer.Option("--all", help="Every experiment of --folder that has results.")]
Where = Annotated[Path, typer.Option(help="Where --all looks.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder of the results; results/NAME next to the file by default.")
]


def run(
    files: Files = None,
    everything: Everything = False,
    folder: Where = Path("experiments"),
    output: Output = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.", min=1)] = None,
    engine: Annotated[
        str, typer.Option(help="processes (this machine) or ray (a cluster, by RAY_ADDRESS).")
    ] = "processes",
    fresh: Annotated[bool, typer.Option("--fresh", help="Recompute finished cells too.")] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Recompute cells that were computed by different code.")
    ] = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Run experiments. A killed run continues where it stopped; a finished one returns at once.

    `--all --stale` brings all stored results to this code, and shows what is left and how long it may take.

    Ctrl-C ends running cells at once and writes the tables of those that are finished; the exit code is then 130.
    """
    from fedanon.harness.workers import stop_requests

    if engine not in ("processes", "ray"):
        raise ConfigError("--engine takes processes or ray.")
    chosen = choose_files(files, everything, folder)
    if output is not None and (len(chosen) > 1 or everything):
        raise ConfigError("--output names the folder of one experiment; leave it out for several.")
    how = {"workers": workers, "engine": engine, "fresh": fresh, "stale": stale}
    with stop_requests() as stopped:
        from fedanon.harness.experiment import read_experiment  # takes a moment, in which Ctrl-C may come

        plans = [_plan(file, fresh=fresh, stale=stale) for file in chosen] if everything or len(chosen) > 1 else []
        done: list[dict[str, Any]] = []
        skipped: list[str] = []
        for number, file in enumerate(chosen):
            if plans and not as_json:
                _tell_left(plans[number:], number, len(chosen))
            try:
                one = _run_one(read_experiment(file), output or results_folder(file), audit, stopped, how)
            except DataError as error:
                if not plans:
                    raise
                skipped.append(f"{file.stem}: {error}")
                continue
            done.append(one.to_dict())
            if not as_json and not one.run.interrupted:
                _tell(one.run, one.folder)
            if one.run.interrupted:
                break
        if as_json:
            print_json(done if plans else done[0])
    if done and done[-1]["interrupted"]:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is written; one more Ctrl-C would only spoil the way out
        raise typer.Exit(INTERRUPTED)
    for line in skipped:
        typer.echo(f"Not run: {line}", err=True)
    if skipped or any(one["failures"] and not one["computed"] and not one["kept"] for one in done):
        raise typer.Exit(1)


def status(
    files: Files = None,
    everything: Everything = False,
    folder: Where = Path("experiments"),
    output: Output = None,
    as_json: options.Json = False,
) -> None:
    """How much of an experiment is finished, what is stale, and what failed; of several, a table with times."""
    from fedanon.harness.experiment import read_experiment
    from fedanon.harness.result_set import read_manifest

    chosen = choose_files(files, everything, folder)
    if everything or len(chosen) > 1:
        _print_plans([_plan(file, stale=True) for file in chosen], as_json=as_json)
        return
    experiment = read_experiment(chosen[0])
    place = output or results_folder(chosen[0])
    finished, by_other_code = _progress(experiment, place)
    try:
        failures = read_manifest(place)["failures"]
    except DataError:
        failures = []
    facts = {"experiment": experiment.name, "cells": _size(experiment), "finished": finished}
    facts |= {"by_other_code": by_other_code, "failures": failures}
    if as_json:
        print_json(facts)
        return
    out = console()
    out.print(f"{experiment.name}: {finished} of {facts['cells']} cells finished.")
    if by_other_code:
        out.print(f"{by_other_code} of them were computed by other code than this; `run --stale` computes them again.")
    _list_failures(failures)


def choose_files(files: list[Path] | None, everything: bool, folder: Path) -> list[Path]:
    """The experiments named, or all of a folder that have results."""
    if everything:
        # one without results is only run, such as that of the tests
        return [file for file in sorted(folder.glob("*.toml")) if results_folder(file).exists()]
    if not files:
        raise ConfigError("Name experiments (TOML), or give --all.")
    return files


def results_folder(file: Path) -> Path:
    """Where the results of an experiment lie by default."""
    return file.parent / "results" / file.stem


# ---- what is left to be done ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """What a run of an experiment would compute: its cells, and their time by what the stored ones took."""

    name: str
    cells: int
    finished: int
    stale: int
    left: int
    seconds: float
    note: str = ""


def _plan(file: Path, *, fresh: bool = False, stale: bool = False) -> _Plan:
    from fedanon.harness.checking import count_stale
    from fedanon.harness.experiment import read_experiment
    from fedanon.harness.restoring import finished_cells
    from fedanon.harness.result_set import read_manifest
    from fedanon.harness.runner import kept_cells

    experiment, folder = read_experiment(file), results_folder(file)
    try:
        manifest = read_manifest(folder)
        per_cell = float(manifest["cell_seconds"]) / max(int(manifest["finished"]), 1)
    except DataError:
        manifest, per_cell = {}, 0.0
    try:
        total, finished = _size(experiment), len(finished_cells(experiment, folder))
        current = len(kept_cells(experiment, folder, stale=True))
        left = total - len(kept_cells(experiment, folder, fresh=fresh, stale=stale))
    except DataError:  # the names of cells hold hashes of the data
        note = "its data are not at hand"
        if not manifest:
            return _Plan(experiment.name, len(experiment.cells), 0, 0, len(experiment.cells), 0.0, note)
        other = count_stale(manifest)
        return _Plan(experiment.name, manifest["cells"], manifest["finished"], other, other, other * per_cell, note)
    return _Plan(experiment.name, total, finished, finished - current, left, left * per_cell)


def _print_plans(plans: list[_Plan], *, as_json: bool) -> None:
    if as_json:
        print_json([vars(plan) for plan in plans])
        return
    rows = [[p.name, p.cells, p.finished, p.stale, p.left, round(p.seconds / 60, 1), p.note] for p in plans]
    columns = ["experiment", "cells", "finished", "stale", "to compute", "minutes", ""]
    print_table("Stored results, and what `run --all --stale` would compute", columns, rows)
    minutes = sum(plan.seconds for plan in plans) / 60
    console().print(f"{sum(plan.left for plan in plans)} cells to compute, about {minutes:.0f} minutes of one process.")


def _tell_left(left: list[_Plan], number: int, total: int) -> None:
    minutes = sum(plan.seconds for plan in left) / 60
    cells = sum(plan.left for plan in left)
    typer.echo(
        f"[{number + 1} of {total}] {left[0].name}: {left[0].left} cells; "
        f"left in all: {cells} cells, about {minutes:.0f} minutes of one process",
        err=True,
    )


# ---- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Finished:
    name: str
    folder: Path
    run: Run

    def to_dict(self) -> dict[str, Any]:
        return {"experiment": self.name, "folder": str(self.folder), **vars(self.run)}


def _run_one(
    experiment: Experiment, folder: Path, audit: Path | None, stopped: Stopped, how: dict[str, Any]
) -> _Finished:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"The folder of results {folder} is a file; name a folder.")
    with audited(audit, "experiment run") as entry:
        done = _run_with_progress(experiment, folder, stopped=stopped, **how)
        entry |= {"experiment": experiment.name, "folder": folder.name, "interrupted": done.interrupted}
        entry |= {"computed": done.computed, "kept": done.kept, "failures": len(done.failures)}
    if done.interrupted:
        _tell_interrupted(experiment, folder, fresh=how["fresh"])
    return _Finished(experiment.name, folder, done)


def _run_with_progress(experiment: Experiment, folder: Path, **how: Any) -> Run:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fedanon.harness.runner import kept_cells
    from fedanon.harness.runner import run as start

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=None)
        kept = kept_cells(experiment, folder, fresh=how["fresh"], stale=how["stale"])
        progress.update(task, total=_size(experiment), completed=len(kept))

        def show_cell(cell: Any, result: Any) -> None:
            progress.update(task, advance=1, description=f"{cell.describe()}{': ' * bool(result.error)}{result.error}")

        return start(experiment, folder, on_cell=show_cell, **how)


def _size(experiment: Experiment) -> int:
    return len({cell.key for cell in experiment.cells})


def _progress(experiment: Experiment, folder: Path) -> tuple[int, int]:
    """Numbers of finished cells, and of those that other code computed."""
    from fedanon.harness.restoring import finished_cells
    from fedanon.harness.runner import kept_cells

    finished = len(finished_cells(experiment, folder))
    return finished, finished - len(kept_cells(experiment, folder, stale=True))


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
