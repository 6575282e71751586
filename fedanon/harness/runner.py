"""Run an experiment: what is finished is kept, what is missing is computed in parallel, what fails is listed.

A run that is stopped writes the tables of what is finished, and the next one goes on from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fedanon.harness.cells import Cell, CellStore, StoredCell
from fedanon.harness.experiment import Experiment
from fedanon.harness.restoring import finished_cells, restore_cells
from fedanon.harness.result_set import write_results
from fedanon.harness.tasks.base import CellResult
from fedanon.harness.workers import Done, Stopped, never, over_processes, over_ray

Engine = Literal["processes", "ray"]
OnCell = Callable[[Cell, Done[CellResult]], None]


@dataclass
class Run:
    """What a run did.

    Parameters
    ----------
    total, computed, kept : numbers of cells: all, computed now, finished before.
    failures : what could not be computed, by key, with the reason.
    seconds : of this run.
    interrupted : whether it was stopped before the last cell.
    """

    total: int
    computed: int = 0
    kept: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False


def run(
    experiment: Experiment,
    folder: Path,
    *,
    workers: int | None = None,
    engine: Engine = "processes",
    fresh: bool = False,
    stale: bool = False,
    on_cell: OnCell | None = None,
    stopped: Stopped = never,
) -> Run:
    """Compute the missing cells of an experiment, then write its result set into ``folder``.

    Parameters
    ----------
    experiment : what to run.
    folder : of the results; finished cells are found there.
    workers : number of processes; all cores by default.
    engine : processes of this machine, or Ray.
    fresh : compute again what is finished.
    stale : compute again what other code than this computed.
    on_cell : called after every cell.
    stopped : asked again and again whether to end; running cells are then ended at once, and the finished ones written.
    """
    start = time.perf_counter()
    store = CellStore(folder)
    cells = {cell.key: cell for cell in experiment.cells}  # the same cell in two grids is computed once
    restore_cells(experiment, folder)
    kept = kept_cells(experiment, folder, fresh=fresh, stale=stale)
    missing = [key for key in cells if key not in kept]
    done = Run(total=len(cells), kept=len(cells) - len(missing))
    workers = workers or os.cpu_count() or 1
    over = over_processes if engine == "processes" else over_ray
    for key, finished in over([(key, cells[key].task) for key in missing], workers, stopped):
        if finished.result is None:
            done.failures[key] = finished.error
        else:
            store.write(key, StoredCell(finished.result, finished.seconds, cells[key].code))
            done.computed += 1
        if on_cell:
            on_cell(cells[key], finished)
    done.interrupted = done.computed + done.kept + len(done.failures) < done.total
    done.seconds = time.perf_counter() - start
    facts = {"seconds": round(done.seconds, 1), "computed": done.computed, "workers": workers, "engine": engine}
    write_results(experiment, folder, done.failures, facts if done.computed else None)
    return done


def kept_cells(experiment: Experiment, folder: Path, *, fresh: bool = False, stale: bool = False) -> set[str]:
    """The keys of the finished cells that a run does not compute again."""
    finished = {} if fresh else finished_cells(experiment, folder)
    current = {cell.key: cell.code for cell in experiment.cells} if stale else {}
    return {key for key, found in finished.items() if not stale or found.code == current[key]}
