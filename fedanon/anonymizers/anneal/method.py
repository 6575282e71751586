"""Annealing: a local search over classes of k to 2k - 1 records, for the least NCP or the least squared error."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS, progress
from fedanon.anonymizers.anneal.problem import Problem, choose_objective, make_problem
from fedanon.anonymizers.anneal.search import Cooling, Pace, SearchRun, pace, recombine, run
from fedanon.anonymizers.base import ReleasePlan, publish_means
from fedanon.anonymizers.enforcement import merge_short_groups
from fedanon.anonymizers.guide import GuidedAnonymizer
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.recoding import NearestGroup
from fedanon.types import IndexArray, IntArray, Rng

#: chosen on Tarragona, Census and one part of Adult; experiments/benchmarks/cooling.py looks at other tables
COOLING = {"ncp": Cooling(0.4, 0.015, 0.05), "sse": Cooling(0.3, 0.04, 0.02)}
#: noted in every release of means, since the objective may have been chosen by the table
MEANS = "Class means are published, for the least squared error; objective=ncp publishes true intervals instead."
#: first temperature of a run that starts from earlier runs joined into one partition
MILD = 0.12
#: shares of the budget where runs are joined: all independent runs, each milder run, each joining
INDEPENDENT, MILDER, JOINING = 0.55, (0.15, 0.15), 0.05
#: shares of the time where classes are priced: independent runs, and pricing beside them; joining again with the priced
#: classes, after the runs alone; a milder run
SEARCHING, JOINING_PRICED, POLISHING = 0.5, 0.15, 0.08


@ANONYMIZERS.register("anneal")
@dataclass(frozen=True, kw_only=True)
class Anneal(GuidedAnonymizer):
    """Simulated annealing over the classes: records move and swap between near classes, classes dissolve and form.

    An optimal partition for either objective has classes of k to 2k - 1 records, so only these are searched. A worse
    step is taken with probability exp(-d / T); T cools, and is scaled by the distance of a record to its nearest ones,
    so that dense and sparse regions freeze together. With ``sse`` the start is TSP-MHM and group means are published;
    with ``ncp`` it is top-down greedy and intervals and lowest common ancestors are published.
    """

    name = "anneal"

    objective: Literal["auto", "ncp", "sse"] = parameter(
        "auto",
        help="'ncp' publishes true cells, 'sse' means of numbers; 'auto' takes 'sse' if all columns are numbers and "
        "neither require nor guide is set",
    )
    seconds: float = parameter(
        5.0,
        help="wall time of preparing and searching; the release differs between machines unless the table is tiny",
        at_least=0.0,
    )
    iterations: int | None = parameter(
        None, help="number of trials, in place of seconds: the same seed gives the same release", at_least=0
    )
    restarts: int = parameter(1, help="independent runs that share the budget; the best is kept", at_least=1)
    recombine: bool = parameter(False, help="join the classes of all restarts and continue from there (needs scipy)")

    pricing: bool = parameter(
        False, help="with recombine: also join classes that column generation prices; best for k up to 5"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pricing and not self.recombine:
            raise ConfigError("The 'pricing' parameter of Anneal needs recombine=true.")
        if self.recombine and self.restarts < 2:
            raise ConfigError(f"The 'recombine' parameter of Anneal needs restarts >= 2. Got {self.restarts} instead.")
        if self.objective == "sse":
            object.__setattr__(self, "truthful", False)
            object.__setattr__(self, "numeric_only", True)

    def for_table(self, table: Table) -> Anneal:
        """The method with an objective: that of means where nothing but numbers is published and nothing else asked."""
        if self.objective != "auto":
            return self
        plain = not self.required and self.guide == "none"
        return replace(self, objective=choose_objective(table) if plain else "ncp")

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """The best partition found, with a note if the search was stopped."""
        labels, runs = self.search(table, rng)
        groups = merge_short_groups(table, Groups.from_labels(labels), KAnonymity(k=self.k))
        notes: tuple[str, ...] = (MEANS,) if self.objective == "sse" else ()
        if runs[-1].stopped:
            notes += ("The search was stopped before its budget was used.",)
        made = self._made(runs)
        return ReleasePlan(groups, self.publish_groups(table, groups), NearestGroup(), notes, made)

    def _made(self, runs: list[SearchRun]) -> Mapping[str, Any]:
        """The trials of every run, where the clock or a person decided about them, so that they can be made again."""
        joined_in_time = self.recombine and self.iterations is None
        if not joined_in_time and not any(run.timed or run.stopped for run in runs):
            return {}
        made: dict[str, Any] = {"iterations": [sum(steps for steps, _ in run.chunks) for run in runs]}
        return made if joined_in_time else {**made, "runs": [run.chunks for run in runs]}

    def publish_groups(self, table: Table, groups: Groups) -> Mapping[str, Cells]:
        """Group means for ``sse``, else the smallest cells."""
        return publish_means(table, groups) if self.objective == "sse" else super().publish_groups(table, groups)

    def search(self, table: Table, rng: Rng) -> tuple[IntArray, list[SearchRun]]:
        """Class of every row, and the runs it was found by; the last may have been stopped early."""
        objective: Literal["ncp", "sse"] = "sse" if self.objective == "sse" else "ncp"
        began = time.perf_counter()
        problem = make_problem(self.view(table), objective, self.k, self.claim(), rng)
        prepared = time.perf_counter() - began
        find = self._joined if self.recombine else self._best
        best, runs = find(problem, rng, prepared)
        labels = np.empty(len(table), dtype=np.int32)
        labels[table.distinct.order] = best
        return labels, runs

    def _best(self, problem: Problem, rng: Rng, prepared: float) -> tuple[IntArray, list[SearchRun]]:
        """The best of the independent runs."""
        runs = self._runs(problem, rng, prepared, 1.0)
        return _best_of(runs), runs

    def _joined(self, problem: Problem, rng: Rng, prepared: float) -> tuple[IntArray, list[SearchRun]]:
        """Independent runs joined into one partition, from which milder runs start, each joined with all before."""
        if self.pricing and not problem.rules:
            return self._joined_with_priced(problem, rng, prepared)
        runs = self._runs(problem, rng, prepared, INDEPENDENT)
        used = INDEPENDENT
        for share in MILDER:
            if runs[-1].stopped:
                return _best_of(runs), runs
            problem = replace(problem, start=self._join(problem, runs))
            runs.append(self._polish(problem, rng, prepared, used, share))
            used += share
        return self._join(problem, runs), runs

    def _joined_with_priced(self, problem: Problem, rng: Rng, prepared: float) -> tuple[IntArray, list[SearchRun]]:
        """Independent runs joined with classes that column generation prices low meanwhile; rules are not priced."""
        from fedanon.anonymizers.bounds.classes import ClassSearch

        ends = None if self.iterations is not None else time.perf_counter() - prepared + self.seconds
        pricing = ClassSearch(problem, None if ends is None else SEARCHING * self.seconds)
        runs = self._runs(problem, rng, prepared, SEARCHING)
        if runs[-1].stopped:
            pricing.stop()
            return _best_of(runs), runs
        if self.objective == "sse":
            with progress.part(SEARCHING, 1.0):
                labels, stopped = pricing.partition([(one.cost, one.labels) for one in runs], rng, ends)
            return labels, [*runs[:-1], runs[-1]._replace(stopped=stopped)]
        priced = pricing.classes(min(found.cost for found in runs))
        problem = replace(problem, start=self._join(problem, runs, priced))
        runs.append(self._polish(problem, rng, prepared, SEARCHING + JOINING + JOINING_PRICED, POLISHING))
        return self._join(problem, runs, priced), runs

    def _polish(self, problem: Problem, rng: Rng, prepared: float, used: float, share: float) -> SearchRun:
        """A milder run, which must not leave the neighborhood of its start."""
        with progress.part(used, used + share):
            return run(problem, self._pace(problem, share, prepared), self._cooling()._replace(hot=MILD), rng)

    def _join(self, problem: Problem, runs: list[SearchRun], priced: Sequence[IndexArray] = ()) -> IntArray:
        """The best partition from the classes of all runs and the priced; that of the best run if time is short.

        The runs are joined alone first: with the priced classes the integer program is much larger, and where it finds
        nothing in its time, what joining the runs gained must not be lost.
        """
        found = [one.labels for one in runs]
        joined = recombine(problem, found, self._joining_time(JOINING))
        best = _best_of(runs) if joined is None else joined
        if not priced:
            return best
        joined = recombine(problem, [*found, best], self._joining_time(JOINING_PRICED), priced)
        return best if joined is None else joined

    def _joining_time(self, share: float) -> float | None:
        return None if self.iterations is not None else share * self.seconds

    def _runs(self, problem: Problem, rng: Rng, prepared: float, share: float) -> list[SearchRun]:
        """Independent runs from the same start, until one is stopped."""
        runs: list[SearchRun] = []
        each = share / self.restarts
        for number, stream in enumerate(rng.spawn(self.restarts)):
            with progress.part(number * each, (number + 1) * each):
                runs.append(run(problem, self._pace(problem, each, prepared), self._cooling(), stream))
            if runs[-1].stopped:
                break
        return runs

    def _cooling(self) -> Cooling:
        return COOLING["sse" if self.objective == "sse" else "ncp"]

    def _pace(self, problem: Problem, share: float, prepared: float) -> Pace:
        """A part of the budget, less its part of the time the preparation took.

        Joining takes time but no trials, so a budget of trials goes to the runs alone.
        """
        searching = INDEPENDENT + sum(MILDER) if self.recombine else 1.0
        if self.pricing and not problem.rules:
            searching = SEARCHING + POLISHING
        trials = None if self.iterations is None else int(self.iterations * share / searching)
        return pace(problem.n, self.seconds * share, trials, prepared * share)


def _best_of(runs: list[SearchRun]) -> IntArray:
    return min(runs, key=lambda found: found.cost).labels
