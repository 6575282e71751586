r"""Lower bounds by column generation, whatever a group costs.

**Groups of exactly k suffice.** Let a partition hold a group G of :math:`m \ge k` records. Give every subset of k of
its records the weight :math:`m / (k \binom{m}{k})`: each record of G is covered once. For squared errors the subsets
cost :math:`\frac{m (k-1)}{k (m-1)} SSE(G) \le SSE(G)` together, since a pair of records is in a subset of k with
probability :math:`\frac{k (k-1)}{m (m-1)}`; for cells each subset has a cell inside that of G, so they cost at most
:math:`m` times the loss of G's cell. Hence the linear program

.. math:: \min \sum_G c_G x_G \quad \text{so that} \quad \sum_{G \ni i} x_G = 1 \text{ for every record } i, \, x \ge 0

over the groups of exactly k records is a lower bound for all partitions into classes of at least k.

**Any prices bound it.** For prices :math:`p_i` and any feasible x,
:math:`\sum c_G x_G = \sum_i p_i + \sum_G (c_G - p(G))\, x_G`. Let the *root* of a group be its member of largest price,
and :math:`l_i \le 0` at most every reduced cost :math:`c_G - p(G)` of a group with root i. The total weight of groups
with root i is at most 1, and that of groups with roots among the p records of smallest prices at most p / k, since all
their members are among these. So the sum is at least :math:`\sum_i p_i` less the largest
:math:`\sum_i |l_i| y_i` under these constraints (:func:`~fedanon.anonymizers.bounds._pool.shortfall`). This holds
whether or not the search for :math:`l_i` came to its end: where it is cut short, :math:`l_i` is the least bound of its
open branches.

Prices are found by ascent over a pool of groups, the groups that undercut them are added, and so on: no linear program
is solved, and the prices move little from step to step, so that they need no further stabilization. A search is cut
short early at first; where that, and no longer the pool, is what keeps the bound low, it is given more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedanon.types import AnyArray, FloatArray, IndexArray

#: prices are raised until the pool's best sum is at most this share above the bound
CLOSE = 1e-5
#: steps of an ascent, and how fast the first one moves prices
STEPS, PACE, SLOWEST = 2000, 0.1, 0.005
#: a search cut short is given more nodes, up to so many, once it finds fewer new groups than this share of the records
FRESH, MOST_NODES = 0.05, 10**9
#: what rounding may have added to a bound, as a share of it
ROUNDING = 1e-9

#: told the bound so far, in cost; returns False to stop
Listener = Callable[[float], bool]


class Pricing(Protocol):
    """What a group costs, and which groups undercut given prices."""

    k: int
    nodes: int
    #: how often each record occurs; equal ones have one price
    counts: AnyArray
    #: roots per call of the exact search, so that the clock is read and an interrupt answered
    roots: int

    @property
    def start(self) -> FloatArray:
        """Prices that no group undercuts."""

    @property
    def scale(self) -> FloatArray:
        """The least change of each price that matters."""

    def costs(self, members: IndexArray) -> FloatArray:
        """Cost of each group, one per row of ``members``."""

    def quick(self, prices: FloatArray) -> IndexArray:
        """Groups that may undercut the prices, found quickly; some for every record on the first call."""

    def sort(self, prices: FloatArray) -> Search:
        """The exact search, records sorted by price."""


class Search(Protocol):
    """The exact search for groups that undercut the prices, root by root."""

    order: IndexArray
    low: FloatArray

    def price(self, begin: int, end: int, slack: float) -> IndexArray:
        """Groups with roots ``begin`` to ``end``, as places in ``order``; ``low`` bounds all of them."""


@dataclass
class Generation:
    """A bound that rises: the pool of groups, the prices, and the best bound so far."""

    pricing: Pricing
    bound: float
    prices: FloatArray
    members: IndexArray
    ended: bool = False
    pool_value: float = np.inf

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.prices)


def generate(
    pricing: Pricing, deadline: float, listen: Listener = lambda _: True, passes: int | None = None
) -> Generation:
    """Raise the bound to nearly that of the linear program, or until time, ``passes`` or ``listen`` end it."""
    from fedanon.anonymizers.bounds._pool import ascend

    counts = pricing.counts
    state = Generation(pricing, float(counts @ pricing.start), pricing.start, np.empty((0, pricing.k), np.int64))
    seen: set[bytes] = set()
    _add(state, seen, pricing.quick(state.prices))
    costs, pace = pricing.costs(state.members), PACE
    for _ in range(20):
        state.prices, state.pool_value = ascend(
            state.members, costs, counts, pricing.scale, state.prices, STEPS // 10, 3 * PACE, PACE
        )
        if not _add(state, seen, pricing.quick(state.prices)):
            break
        costs = pricing.costs(state.members)
    made = 0
    while listen(state.bound) and made != passes:
        made += 1
        found = _price(state, deadline, listen)
        if found is None:
            break
        short, groups = found
        state.bound = max(state.bound, float((counts @ state.prices - short) * (1 - ROUNDING)))
        added = _add(state, seen, np.concatenate([groups, pricing.quick(state.prices)]))
        if added < FRESH * state.n and short > CLOSE * state.pool_value:
            pricing.nodes = min(4 * pricing.nodes, MOST_NODES)
        if state.pool_value - state.bound <= CLOSE * state.pool_value and pace <= SLOWEST:
            state.ended = True
            break
        costs = pricing.costs(state.members)
        state.prices, state.pool_value = ascend(
            state.members, costs, counts, pricing.scale, state.prices, STEPS, pace, 0.02 * pace
        )
        pace = max(SLOWEST, pace * (0.8 if added else 0.5))
    return state


def _price(state: Generation, deadline: float, listen: Listener) -> tuple[float, IndexArray] | None:
    """What groups that undercut the prices take away at most, and such groups; None if the time is over."""
    from fedanon.anonymizers.bounds._pool import shortfall

    pricing = state.pricing
    search = pricing.sort(state.prices)
    slack = 1e-9 * max(float(np.abs(state.prices).mean()), 1e-300)
    found = []
    for begin in range(0, state.n, pricing.roots):
        if time.perf_counter() > deadline or not listen(state.bound):
            return None
        found.append(search.price(begin, min(begin + pricing.roots, state.n), slack))
    short = shortfall(search.low, pricing.counts[search.order], pricing.k)
    return short, search.order[np.concatenate(found)]


def _add(state: Generation, seen: set[bytes], groups: AnyArray) -> int:
    """Add the groups that are not in the pool yet; how many."""
    fresh = []
    for group in np.sort(groups, axis=1).astype(np.int64):
        key = group.tobytes()
        if key not in seen:
            seen.add(key)
            fresh.append(group)
    if fresh:
        state.members = np.concatenate([state.members, np.array(fresh)])
    return len(fresh)
