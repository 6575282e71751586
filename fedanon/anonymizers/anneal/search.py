"""The annealer's runs: a budget in seconds or trials, a cooling schedule, and the recombination of several runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from fedanon.anonymizers import progress
from fedanon.anonymizers.anneal.problem import Problem
from fedanon.anonymizers.integer_program import choose_classes
from fedanon.data.groups import Groups
from fedanon.errors import ConfigError
from fedanon.types import AnyArray, FloatArray, IndexArray, IntArray, Rng

#: a run changes its temperature, reads the clock and can be stopped this often, but not for fewer trials than LEAST
CHUNKS, LEAST = 400, 1000
#: no chunk is planned to take longer, in seconds, so that an interrupt is answered
LONGEST = 0.25
#: the last part of a run only goes downhill
DOWNHILL = 0.02
#: a trial never takes longer than this, in seconds; decides whether a small table needs a clock at all
SLOWEST_TRIAL = 2e-6


class Pace(Protocol):
    """How much of a budget is used, and how many trials come next."""

    def share(self) -> float:
        """Used share of the budget; the run ends at 1."""

    def steps(self) -> int:
        """Number of trials until the next check."""

    def count(self, steps: int) -> None:
        """Add trials that were made."""


@dataclass
class Trials:
    """A budget of trials: the same on every machine."""

    total: int
    done: int = 0

    def share(self) -> float:
        """Share of the trials that were made."""
        return self.done / self.total if self.total else 1.0

    def steps(self) -> int:
        """An even part of the budget."""
        return min(max(self.total // CHUNKS, LEAST), self.total - self.done)

    def count(self, steps: int) -> None:
        """Add trials that were made."""
        self.done += steps


@dataclass
class Seconds:
    """A budget of wall time."""

    total: float
    done: int = 0
    began: float = field(default_factory=time.perf_counter)

    def share(self) -> float:
        """Share of the time that has passed, rounded so that it is written down as it was used."""
        return round((time.perf_counter() - self.began) / self.total, 6) if self.total > 0 else 1.0

    def steps(self) -> int:
        """As many as fit into an even part of the time, judging by the trials so far."""
        gone = time.perf_counter() - self.began
        return max(int(self.done / gone * min(self.total / CHUNKS, LONGEST)), LEAST) if gone else LEAST

    def count(self, steps: int) -> None:
        """Add trials that were made."""
        self.done += steps


@dataclass
class Repeated:
    """The trials of an earlier run, once more."""

    chunks: progress.Chunks
    made: int = 0

    def share(self) -> float:
        """Share of the budget that was used when the earlier run was here."""
        return self.chunks[self.made][1] if self.made < len(self.chunks) else 1.0

    def steps(self) -> int:
        """As many as the earlier run made."""
        return self.chunks[self.made][0]

    def count(self, steps: int) -> None:
        """Go on to the next chunk."""
        self.made += 1


def pace(n: int, seconds: float, iterations: int | None, used: float = 0.0) -> Pace:
    """The budget of one run over ``n`` records, of which ``used`` seconds have passed already.

    At most n^3 trials: what there is to gain in a small table is found by then. If these fit into the time on any
    machine, no clock is needed, and the run is the same everywhere.
    """
    most = n**3
    earlier = progress.next_repeated()
    if earlier is not None:
        return Repeated(earlier)
    if iterations is not None:
        return Trials(min(iterations, most))
    return Trials(most) if most * SLOWEST_TRIAL <= seconds else Seconds(seconds - used)


class Cooling(NamedTuple):
    """First and last temperature, in units of a record's local scale, and the share of trials on whole classes.

    The share applies up to k=5; a trial that dissolves or creates a class costs O(k^2), so larger k get fewer.
    """

    hot: float
    cold: float
    structural: float


class SearchRun(NamedTuple):
    """The best partition that a run found, its cost, whether it was stopped early or by the clock, and its trials."""

    labels: IntArray
    cost: float
    stopped: bool
    timed: bool
    chunks: progress.Chunks


def run(problem: Problem, budget: Pace, cooling: Cooling, rng: Rng) -> SearchRun:
    r"""Cool from hot to cold, then only go downhill.

    .. math:: T(s) = hot \, (cold / hot)^s

    with s the used share of the budget. The result never costs more than the start, and is the best found so far if a
    watcher (:mod:`fedanon.anonymizers.progress`) or the user interrupts.
    """
    from fedanon.anonymizers.anneal._kernel import anneal, settle

    classes = problem.classes()
    state = rng.integers(2**63, size=1, dtype=np.uint64)
    hot, cold, structural = cooling
    structural *= min(1.0, (5 / problem.k) ** 2)
    best, least = problem.start, settle(problem.costs, classes, problem.start)
    cost, stopped = least, False
    chunks: list[tuple[int, float]] = []
    try:
        while (share := budget.share()) < 1.0 and least > 0.0 and not stopped:
            steps = budget.steps()
            heat = hot * (cold / hot) ** (share / (1.0 - DOWNHILL)) if share < 1.0 - DOWNHILL else 0.0
            cost += anneal(problem.costs, classes, problem.near, problem.k, steps, heat, structural, state)
            budget.count(steps)
            chunks.append((steps, share))
            if cost < least:
                best, least = classes.label.copy(), cost
            stopped = not progress.report(budget.share(), least * problem.unit)
    except KeyboardInterrupt:
        stopped = True
    return SearchRun(best, float(settle(problem.costs, classes, best)), stopped, isinstance(budget, Seconds), chunks)


# ---- Recombination -------------------------------------------------------------------------------

#: how near to the optimum is near enough, as a share
CLOSE = 5e-5
#: number of branch-and-bound nodes where no time limit is given, so that all machines find the same
NODES = 1000


def recombine(
    problem: Problem,
    found: Sequence[IntArray],
    seconds: float | None,
    more: Sequence[IndexArray] = (),
) -> IntArray | None:
    r"""Solve set partitioning over all classes of ``found`` and ``more``; None if the time is too short to be better.

    .. math:: \min \sum_j c_j x_j \quad \text{so that} \quad \sum_j a_{ij} x_j = n_i \text{ for every kind } i

    with x whole numbers, c the cost of a class, a how many records of a kind it holds and n how many there are, by
    HiGHS's branch and bound. Each partition of ``found`` is feasible, so the optimum is never worse than the best.

    Parameters
    ----------
    more : classes by kinds, sorted; see :attr:`~fedanon.anonymizers.anneal.problem.Problem.kinds`.
    """
    try:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csc_array
    except ImportError:
        raise ConfigError("The 'recombine' parameter of Anneal needs scipy: pip install 'fedanon[harness]'.") from None

    classes, costs, least = _pool(problem, found, more)
    first = problem.kinds[1]
    ends = np.concatenate([[0], np.cumsum([len(c) for c in classes])])
    entries = np.ones(ends[-1])
    cover = csc_array((entries, np.concatenate(classes), ends), shape=(len(first) - 1, len(classes)))
    cover.sum_duplicates()
    covered = [LinearConstraint(cover, np.diff(first), np.diff(first))]
    times, _ = choose_classes(costs, covered, most=np.inf, gap=CLOSE, seconds=seconds, nodes=NODES)
    if times is None or costs @ times > least * (1 + 1e-9):
        return None
    return _deal([classes[j] for j in np.flatnonzero(times) for _ in range(times[j])], first)


def _deal(classes: list[IndexArray], first: AnyArray) -> IntArray:
    """Class of every record, where classes are known by the kinds of their members."""
    labels = np.empty(first[-1], dtype=np.int32)
    used = first[:-1].copy()
    for number, kinds in enumerate(classes):
        for kind in kinds:
            labels[used[kind]] = number
            used[kind] += 1
    return labels


def _pool(
    problem: Problem, found: Sequence[IntArray], more: Sequence[IndexArray]
) -> tuple[list[IndexArray], FloatArray, float]:
    """The distinct classes of partitions and of ``more``, by kinds; their costs; what the best partition costs."""
    from fedanon.anonymizers.anneal._kernel import class_cost, settle

    room = problem.classes()
    kind, first = problem.kinds
    classes: dict[bytes, IndexArray] = {}
    costs: list[float] = []
    least = np.inf
    for labels in found:
        groups = Groups.from_labels(labels)
        least = min(least, settle(problem.costs, room, groups.labels))
        for number, members in enumerate(np.split(groups.order, groups.starts[1:])):
            kinds = np.sort(kind[members]).astype(np.int64)
            if classes.setdefault(kinds.tobytes(), kinds) is kinds:
                costs.append(room.cost[number])
    for kinds in more:
        if classes.setdefault(kinds.tobytes(), kinds) is kinds:
            repeated = np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
            costs.append(class_cost(problem.costs, room, first[kinds] + repeated))
    return list(classes.values()), np.array(costs), least
