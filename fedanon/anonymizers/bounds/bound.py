"""The least loss that any release of a table at k can have, from below, and how far a given loss is from it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fedanon.anonymizers import progress
from fedanon.anonymizers.anneal.problem import Objective, choose_objective, ncp_costs, neighbors
from fedanon.anonymizers.bounds.cuts import Tightened, tighten
from fedanon.anonymizers.bounds.generation import Generation, Pricing, generate
from fedanon.anonymizers.bounds.ncp import box_pricing
from fedanon.anonymizers.bounds.relaxation import relax
from fedanon.anonymizers.bounds.sse import SquaredErrors
from fedanon.anonymizers.microaggregation.base import standardized
from fedanon.data.spans import points
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError

#: share of the time that the smallest boxes may take
BOXES = 0.4
#: share of the time that the relaxation of large groups may take, before groups are generated
RELAXING = 0.5
#: nodes of an exact search per root, at first: many up to this k, where it is quick, else few
MANY, FEW, QUICK = 3000, 20, 6


@dataclass(frozen=True)
class Bound:
    """What was proved.

    Parameters
    ----------
    objective : ``ncp``, or ``sse`` for the information loss of numeric columns.
    k, n : records per class at least, and records.
    bound : no partition into classes of k records loses less (NCP as a share, IL in per cent).
    ended : whether the search came to its end; more time would hardly raise the bound.
    seconds : wall time.

    Example
    -------
    >>> Bound("ncp", 5, 100, 0.08, False, 1.0).gap(0.1)
    0.25
    """

    objective: Objective
    k: int
    n: int
    bound: float
    ended: bool
    seconds: float

    def gap(self, loss: float) -> float:
        """How much more is lost than the bound, as a share of the bound: the most that anybody could still gain."""
        if self.bound > 0:
            return loss / self.bound - 1
        return 0.0 if loss <= 0 else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """For a manifest or JSON."""
        return asdict(self)


def lower_bound(table: Table, k: int, *, objective: Objective | None = None, seconds: float = 60.0) -> Bound:
    """The least loss of any partition of the table's records into classes of at least k, proved from below.

    The bound is valid whenever it is stopped: by its time, by a watcher (:mod:`fedanon.anonymizers.progress`), or by
    the user. It counts records; classes of k *people* who own several records can only lose more.

    Parameters
    ----------
    objective : ``sse`` bounds the information loss of published means, ``ncp`` that of cells; by default ``sse`` for
        tables whose quasi-identifiers are all numbers.
    seconds : wall time; kernels that must be compiled first are part of it.
    """
    began = time.perf_counter()
    chosen = objective or choose_objective(table)
    _refuse(table, k, chosen)
    if k == 1:
        return Bound(chosen, k, len(table), 0.0, True, time.perf_counter() - began)
    pricing, unit = _squared_errors(table, k) if chosen == "sse" else _boxes(table, k, began + BOXES * seconds)
    best = [0.0]

    def listen(bound: float) -> bool:
        best[0] = max(best[0], bound)
        used = (time.perf_counter() - began) / seconds if seconds > 0 else 1.0
        return progress.report(min(used, 1.0), best[0] * unit)

    found: Generation | Tightened | None = None
    try:
        go_on = True
        if isinstance(pricing, SquaredErrors) and k > QUICK:
            go_on = listen(relax(pricing.points, k, began + RELAXING * seconds, listen)) or best[0] == 0
        if go_on:
            found = generate(pricing, began + seconds, listen)
        if isinstance(pricing, SquaredErrors) and isinstance(found, Generation) and found.ended:
            found = tighten(found, began + seconds, listen)
        if found is not None:
            best[0] = max(best[0], found.bound)
    except KeyboardInterrupt:
        found = None
    ended = found is not None and found.ended
    return Bound(chosen, k, len(table), best[0] * unit, ended, time.perf_counter() - began)


def _refuse(table: Table, k: int, objective: Objective) -> None:
    if k < 1:
        raise ConfigError(f"k must be at least 1. Got {k} instead.")
    if len(table) < k:
        raise InfeasibleError(f"A table of {len(table)} records has no class of k = {k}; choose a smaller k.")
    if objective == "sse" and choose_objective(table) != "sse":
        raise ConfigError("The objective 'sse' needs numeric quasi-identifiers without missing values; take 'ncp'.")


def _squared_errors(table: Table, k: int) -> tuple[Pricing, float]:
    values = np.ascontiguousarray(standardized(points(table)[table.distinct.order]))
    squares = float(np.square(values).sum())
    return SquaredErrors(values, k, MANY if k <= QUICK else FEW), 100.0 / squares if squares else 0.0


def _boxes(table: Table, k: int, deadline: float) -> tuple[Pricing, float]:
    records = ncp_costs(table, table.distinct.first_rows, 0)
    near = neighbors(records, table.distinct, k, np.random.default_rng(0)).near
    return box_pricing(records, table.distinct.sizes, near, k, deadline), 1.0 / table.codes.size
