"""Annealing: local search over classes of k to 2k - 1 records, for least NCP or least squared error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS, progress
from fedanon.anonymizers.anneal_problem import Labels, Problem, ncp_problem, sse_problem
from fedanon.anonymizers.anneal_recombine import recombine
from fedanon.anonymizers.anneal_search import Cooling, Run, pace, run
from fedanon.anonymizers.base import Draft, KAnonymizer, Rng
from fedanon.anonymizers.publishing import publish_means
from fedanon.anonymizers.repair import merge_short_groups
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.recoding import NearestGroup
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.parameters import parameter
from fedanon.privacy.k_anonymity import KAnonymity

#: chosen on Tarragona, Census and one part of Adult
COOLING = {"ncp": Cooling(0.4, 0.015, 0.05), "sse": Cooling(0.4, 0.015, 0.02)}
#: part of the time that is kept for putting the runs together
RECOMBINING = 0.25


@ANONYMIZERS.register("anneal")
@dataclass(frozen=True, kw_only=True)
class Anneal(KAnonymizer):
    """Simulated annealing over the classes: records move and swap between near classes, classes dissolve and form.

    An optimal partition for either objective has classes of k to 2k - 1 records, so only these are searched. A worse
    step is taken with probability exp(-d / T); T cools, and is scaled by the distance of a record to its nearest ones,
    so that dense and sparse regions freeze together. With ``sse`` the start is TSP-MHM and group means are published;
    with ``ncp`` it is top-down greedy and intervals and lowest common ancestors are published.
    """

    name = "anneal"

    objective: Literal["auto", "ncp", "sse"] = parameter(
        "auto", help="'ncp' (auto) keeps values true; 'sse' publishes means of numeric columns"
    )
    seconds: float = parameter(
        5.0, help="wall time of the search; unless the table is tiny the release differs between machines", at_least=0.0
    )
    iterations: int | None = parameter(
        None, help="number of trials, in place of seconds: the same seed gives the same release", at_least=0
    )
    restarts: int = parameter(1, help="independent runs that share the budget, the best kept", at_least=1)
    recombine: bool = parameter(False, help="put the classes of all restarts together anew (needs scipy)")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recombine and self.restarts < 2:
            raise ConfigError(f"The 'recombine' parameter of Anneal needs restarts >= 2. Got {self.restarts} instead.")
        if self.objective == "sse":
            object.__setattr__(self, "truthful", False)
            object.__setattr__(self, "numeric_only", True)

    def draft(self, table: Table, rng: Rng) -> Draft:
        """The best partition found, with a note if the search was stopped."""
        labels, stopped = self.search(table, rng)
        groups = merge_short_groups(table, Groups.of(labels), KAnonymity(k=self.k))
        notes = ("The search was stopped before its budget was used.",) if stopped else ()
        return Draft(groups, self.publish_groups(table, groups), NearestGroup(), notes)

    def publish_groups(self, table: Table, groups: Groups) -> Mapping[str, Cells]:
        """Group means for ``sse``, else the smallest cells."""
        return publish_means(table, groups) if self.objective == "sse" else super().publish_groups(table, groups)

    def search(self, table: Table, rng: Rng) -> tuple[Labels, bool]:
        """Class of every row, and whether the search was stopped early."""
        problem = (sse_problem if self.objective == "sse" else ncp_problem)(table, self.k, rng)
        runs = self._runs(problem, rng)
        best = min(runs, key=lambda found: found.cost).labels
        stopped = any(found.stopped for found in runs)
        if self.recombine and not stopped:
            seconds = None if self.iterations is not None else RECOMBINING * self.seconds
            joined = recombine(problem, [found.labels for found in runs], seconds)
            best = best if joined is None else joined
        labels = np.empty(len(table), dtype=np.int32)
        labels[table.distinct.order] = best
        return labels, stopped

    def _runs(self, problem: Problem, rng: Rng) -> list[Run]:
        """Independent runs from the same start, until one is stopped."""
        share = (1.0 - RECOMBINING * self.recombine) / self.restarts
        trials = None if self.iterations is None else self.iterations // self.restarts
        cooling = COOLING["sse" if self.objective == "sse" else "ncp"]
        runs: list[Run] = []
        for number, stream in enumerate(rng.spawn(self.restarts)):
            with progress.part(number / self.restarts, (number + 1) / self.restarts):
                runs.append(run(problem, pace(problem.n, self.seconds * share, trials), cooling, stream))
            if runs[-1].stopped:
                break
        return runs
