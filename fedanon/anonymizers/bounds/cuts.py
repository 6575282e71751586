r"""A bound beyond the linear program: of any three records, at most one class holds two or more.

The linear program may halve what nobody can halve: four records far from all others cost it less than their class, by
way of its four subsets of three. For a triple of records S every partition satisfies

.. math:: \sum_{G : |G \cap S| \ge 2} x_G \le 1,

a cut (a subset-row inequality, Jepsen et al. 2008). With a penalty :math:`q_S \ge 0` for each, the reduced cost of a
class is :math:`c_G - p(G) + \sum_{|G \cap S| \ge 2} q_S`, and :math:`\sum_i p_i - \sum_S q_S` less the shortfall of
:mod:`fedanon.anonymizers.bounds.generation` is a bound. Mixes of subsets violate cuts, so classes of all sizes from k
to 2k - 1 are priced here.

Cuts are looked for where the groups chosen during the ascent, taken as shares, cover a triple more than once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import numpy as np

from fedanon.anonymizers.bounds.generation import CLOSE, MOST_NODES, ROUNDING, Generation, Listener
from fedanon.anonymizers.bounds.sse import Cuts, RootSearch, SquaredErrors
from fedanon.types import AnyArray, FloatArray, IndexArray

#: how much more than once a triple is covered, and cuts per record and round, at most
VIOLATED, PER_RECORD = 1.03, 3
#: steps of an ascent; its first and last pace, which halve where no cut is found
STEPS, PACE, SLOWEST = 600, 0.03, 1e-3
#: groups listed per root and size, and nodes of the search for them
EACH, LISTING = 30, 400
#: groups whose reduced cost per member is above this share of the mean price leave the pool
FAR = 0.5


@dataclass
class CutPool:
    """Groups of k to 2k - 1 records in rows that end with -1, and triples with penalties."""

    groups: IndexArray
    sizes: IndexArray
    costs: FloatArray
    triples: IndexArray
    penalties: FloatArray

    def listed(self, n: int) -> Cuts:
        """The cuts, and those of every record."""
        first, entries = _by_record(self.triples, n)
        return self.triples, self.penalties, first, entries


@dataclass
class Tightened:
    """A bound, the prices and penalties that prove it, and the groups it was found by."""

    bound: float
    prices: FloatArray
    penalties: FloatArray
    pool: CutPool
    ended: bool = False

    def cuts(self) -> Cuts:
        """The cuts with the penalties that prove the bound; those found since have none."""
        triples, later, first, listed = self.pool.listed(len(self.prices))
        return triples, np.append(self.penalties, np.zeros(len(later) - len(self.penalties))), first, listed

    def reduced(self) -> FloatArray:
        """Reduced cost of every group of the pool."""
        from fedanon.anonymizers.bounds._cuts import triggered

        pool = self.pool
        triples, penalties, first, listed = self.cuts()
        begin, trigger = triggered(pool.groups, pool.sizes, triples, first, listed)
        penalty = np.add.reduceat(np.append(penalties[trigger], 0.0), begin[:-1]) * (np.diff(begin) > 0)
        paid = np.where(pool.groups >= 0, self.prices[pool.groups], 0.0).sum(axis=1)
        return np.asarray(pool.costs - paid + penalty)


def tighten(state: Generation, deadline: float, listen: Listener, passes: int | None = None) -> Tightened:
    """Raise the bound of a finished column generation by cuts, until time, ``passes`` or ``listen`` end it."""
    from fedanon.anonymizers.bounds._cuts import ascend_with_cuts, triggered

    pricing = cast("SquaredErrors", state.pricing)
    n, found = state.n, Tightened(state.bound, state.prices, np.empty(0), _first_pool(state))
    prices, pace, made = state.prices, PACE, 0
    while listen(found.bound) and made != passes and time.perf_counter() < deadline:
        made += 1
        pool = found.pool
        _, _, first, listed = pool.listed(n)
        begin, trigger = triggered(pool.groups, pool.sizes, pool.triples, first, listed)
        unit = pricing.scale[pool.triples].min(axis=1)
        prices, pool.penalties, share = ascend_with_cuts(
            pool.groups,
            pool.sizes,
            pool.costs,
            begin,
            trigger,
            pricing.scale,
            unit,
            prices,
            pool.penalties,
            STEPS,
            pace,
            0.02 * pace,
        )
        priced = _price(pricing, prices, pool.listed(n), deadline, listen, found.bound)
        if priced is None:
            break
        short, groups = priced
        value = float(prices.sum() - pool.penalties.sum())
        if (value - short) * (1 - ROUNDING) > found.bound:
            found.bound = (value - short) * (1 - ROUNDING)
            found.prices, found.penalties = prices, pool.penalties
        fresh = _add_cuts(pool, share, n)
        added = add_groups(pool, pricing, groups)
        if short > CLOSE * value and added < 0.02 * n:
            pricing.nodes = min(4 * pricing.nodes, MOST_NODES)
        if not fresh and not added and short <= CLOSE * value and pace == SLOWEST:
            found.ended = True
            break
        pace = max(SLOWEST, pace * (0.9 if fresh > 0.02 * n else 0.7))
    return found


def _by_record(rows: AnyArray, n: int) -> tuple[IndexArray, IndexArray]:
    """Rows that hold each record, one list after the other, and where each begins; -1 is no record."""
    row, column = np.nonzero(rows >= 0)
    record = rows[row, column]
    first = np.concatenate([[0], np.cumsum(np.bincount(record, minlength=n))])
    return first.astype(np.int64), row[np.argsort(record, kind="stable")].astype(np.int64)


def _first_pool(state: Generation) -> CutPool:
    """The groups of k that cost little more than their prices, and larger ones that grow from them."""
    pricing = cast("SquaredErrors", state.pricing)
    reduced = pricing.costs(state.members) - state.prices[state.members].sum(axis=1)
    far = FAR * pricing.k * float(state.prices.mean())
    near = state.members[reduced < far]
    pool = CutPool(
        np.empty((0, 2 * pricing.k - 1), dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty(0),
        np.empty((0, 3), dtype=np.int64),
        np.empty(0),
    )
    add_groups(pool, pricing, [near, *pricing.extend(near, state.prices, far)])
    return pool


def add_groups(pool: CutPool, pricing: SquaredErrors, groups: list[IndexArray]) -> int:
    """Add the groups, one per row or alone, that are not in the pool yet; how many."""
    width = 2 * pricing.k - 1
    rows = [pool.groups]
    for group in groups:
        block = np.sort(np.atleast_2d(group), axis=1)
        padded = np.full((len(block), width), -1, dtype=np.int64)
        padded[:, : block.shape[1]] = block
        rows.append(padded)
    everything = np.concatenate(rows)
    _, first = np.unique(everything, axis=0, return_index=True)
    fresh = np.sort(first[first >= len(pool.groups)])
    added = everything[fresh]
    sizes = (added >= 0).sum(axis=1)
    costs = np.empty(len(added))
    for size in np.unique(sizes):
        costs[sizes == size] = pricing.costs(added[sizes == size, :size])
    pool.groups = np.concatenate([pool.groups, added])
    pool.sizes, pool.costs = np.concatenate([pool.sizes, sizes]), np.concatenate([pool.costs, costs])
    return len(added)


def _add_cuts(pool: CutPool, share: FloatArray, n: int) -> int:
    """Add the triples that the chosen groups cover too often; how many."""
    from fedanon.anonymizers.bounds._cuts import violated_triples

    chosen = np.flatnonzero(share > 1e-3)
    groups, sizes = pool.groups[chosen], pool.sizes[chosen]
    first, listed = _by_record(groups, n)
    triples, _ = violated_triples(groups, sizes, share[chosen], first, listed, n, VIOLATED, PER_RECORD)
    if not triples:
        return 0
    everything = np.concatenate([pool.triples, np.array(triples, dtype=np.int64)])
    _, where = np.unique(everything, axis=0, return_index=True)
    fresh = np.sort(where[where >= len(pool.triples)])
    pool.triples = np.concatenate([pool.triples, everything[fresh]])
    pool.penalties = np.concatenate([pool.penalties, np.zeros(len(fresh))])
    return len(fresh)


def _place(cuts: Cuts, order: IndexArray) -> Cuts:
    """The cuts with records named by their places in ``order``."""
    n = len(order)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    triples = np.ascontiguousarray(rank[cuts[0]])
    return triples, cuts[1], *_by_record(triples, n)


def _price(
    pricing: SquaredErrors, prices: FloatArray, cuts: Cuts, deadline: float, listen: Listener, bound: float
) -> tuple[float, list[IndexArray]] | None:
    """What groups of any size that undercut the prices take away at most, and such groups; None if time is over."""
    from fedanon.anonymizers.bounds._pool import shortfall

    n, k = len(prices), pricing.k
    order = np.argsort(prices, kind="stable")
    slack = 1e-9 * max(float(np.abs(prices).mean()), 1e-300)
    low, found = np.zeros(n), []
    for size in range(k, 2 * k):
        search = RootSearch(pricing, prices, size, _place(cuts, order))
        for begin in range(0, n, pricing.roots):
            if time.perf_counter() > deadline or not listen(bound):
                return None
            found.append(order[search.price(begin, min(begin + pricing.roots, n), slack)])
        np.minimum(low, search.low, out=low)
    return shortfall(low, pricing.counts, k), found


def list_groups(found: Tightened, pricing: SquaredErrors, gap: float, deadline: float) -> int:
    """Add groups to the pool that cost hardly more than their prices, and less than ``gap`` more; how many."""
    n = len(found.prices)
    order = np.argsort(found.prices, kind="stable")
    cuts = _place(found.cuts(), order)
    groups = []
    pricing.nodes = LISTING
    for size in range(pricing.k, 2 * pricing.k):
        search = RootSearch(pricing, found.prices, size, cuts)
        for begin in range(0, n, pricing.roots):
            if time.perf_counter() > deadline:
                break
            groups.append(order[search.price(begin, min(begin + pricing.roots, n), -gap, EACH)])
    return add_groups(found.pool, pricing, groups)
