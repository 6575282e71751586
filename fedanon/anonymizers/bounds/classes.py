"""Column generation beside an annealer, and what comes of it: classes worth joining, or a partition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any

import numpy as np

from fedanon.anonymizers.bounds.cuts import Tightened, list_groups, tighten
from fedanon.anonymizers.bounds.generation import Generation, generate
from fedanon.anonymizers.bounds.ncp import BoxPricing, box_pricing
from fedanon.anonymizers.bounds.rounding import PriceRounding
from fedanon.anonymizers.bounds.sse import SquaredErrors
from fedanon.types import IndexArray, IntArray, Rng

#: classes per record at most, so that the integer program stays small
MOST = 5
#: passes of the exact search where no time limit is given, so that all machines find the same; without and with cuts
PASSES, CUT_PASSES = 40, 14
#: share of the time for prices without cuts, with them, and for listing classes at these prices
PLAIN, CUT, LISTED = 0.6, 0.95, 1.1


class ClassSearch:
    """Column generation on a thread of its own, beside the annealer's runs, which leave the second core idle.

    Parameters
    ----------
    problem : :class:`~fedanon.anonymizers.anneal.problem.Problem`; its records are in the order of the classes.
    seconds : wall time; None stands for a number of passes, so that all machines find the same.
    """

    def __init__(self, problem: Any, seconds: float | None) -> None:
        from fedanon.anonymizers.anneal._costs import SseCosts

        self._problem, self._seconds, self._began = problem, seconds, time.perf_counter()
        self._stop, self._failed = Event(), []  # type: tuple[Event, list[BaseException]]
        self._sse = isinstance(problem.costs, SseCosts)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _until(self, share: float) -> float:
        return np.inf if self._seconds is None else self._began + share * self._seconds

    def _run(self) -> None:
        try:
            self._search()
        except BaseException as error:  # raised again where the classes are asked for
            self._failed.append(error)

    def _search(self) -> None:
        problem, timed = self._problem, self._seconds is not None
        go_on = lambda _: not self._stop.is_set()  # noqa: E731
        if self._sse:
            self._pricing: SquaredErrors | BoxPricing = SquaredErrors(problem.costs.points, problem.k)
        else:
            distinct = problem.near.first[:-1]
            records = problem.costs._replace(points=np.ascontiguousarray(problem.costs.points[distinct]))
            counts = np.diff(problem.near.first)
            self._pricing = box_pricing(records, counts, problem.near.near, problem.k, self._until(0.3))
        state = generate(self._pricing, self._until(PLAIN), go_on, passes=None if timed else PASSES)
        self._found: Generation | Tightened = state
        if self._sse:
            self._found = tighten(state, self._until(CUT), go_on, passes=None if timed else CUT_PASSES)

    def stop(self) -> None:
        """Give the search up."""
        self._stop.set()
        self._thread.join()

    def classes(self, cost: float) -> list[IndexArray]:
        """Classes of boxes, by the kinds of their members, whose reduced cost is below the gap to the bound.

        A partition cheaper than ``cost`` can hold no class of a larger one, since all its reduced costs add up to less
        than the gap; those with the smallest are kept.
        """
        found = self._wait()
        assert isinstance(found, Generation)
        reduced = self._pricing.costs(found.members) - found.prices[found.members].sum(axis=1)
        kept = np.flatnonzero(reduced < cost - found.bound)
        kept = kept[np.argsort(reduced[kept], kind="stable")][: MOST * self._problem.n]
        return [found.members[j] for j in kept]

    def partition(
        self, start: Sequence[tuple[float, IntArray]], rng: Rng, until: float | None
    ) -> tuple[IntArray, bool]:
        """A partition of points from the prices and from others with their costs; whether a watcher stopped it."""
        found = self._wait()
        assert isinstance(found, Tightened)
        assert isinstance(self._pricing, SquaredErrors)
        least, best = min(start, key=lambda one: one[0])
        list_groups(found, self._pricing, max(least - found.bound, 0.0), self._until(LISTED))
        rounding = PriceRounding(self._pricing, found, self._problem.unit)
        for _, labels in start:
            rounding.add(labels)
        dived = rounding.dive()
        if dived is not None and rounding.cost(dived) < least:
            best = dived
        return rounding.improve(best, rng, until)

    def _wait(self) -> Generation | Tightened:
        self._thread.join()
        if self._failed:
            raise self._failed[0]
        return self._found
