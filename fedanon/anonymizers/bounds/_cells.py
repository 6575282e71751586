# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Groups of k records that lose less than their prices add up to, by way of the cells that taxonomies allow.

Few nodes of a taxonomy hold a given leaf, so all cells of the categorical columns can be gone through, column by column
from the root down: a part of a cell loses at least what its columns so far lose, and is given up once the k largest
prices inside add up to less than that. What is left inside a cell is a search over the numeric columns alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fedanon.anonymizers.anneal._costs import _cell_loss
from fedanon.anonymizers.bounds._boxes import best_box, candidates


class TaxonomyNodes(NamedTuple):
    """Nodes of the taxonomies, column by column in the order of the search.

    Parameters
    ----------
    column : the column searched at each depth.
    start : where the nodes of each depth begin; one more entry marks the end.
    first, last, loss : leaves below each node, and what publishing it loses.
    """

    column: Any
    start: Any
    first: Any
    last: Any
    loss: Any


@njit(cache=True)
def smallest_nodes(costs, column, leaves):
    """First leaf, last leaf and loss of every cell of a taxonomy that holds some of the leaves and no leaf in vain."""
    found = [(leaf, leaf, 0.0) for leaf in leaves]
    # a cell of more leaves is the smallest over two neighbors; wider ones lose as much only if they are the same
    for at in range(leaves.shape[0] - 1):
        loss = _cell_loss(costs, column, leaves[at], leaves[at + 1])
        first, last = at, at + 1
        while first > 0 and _cell_loss(costs, column, leaves[first - 1], leaves[first]) <= loss:
            first -= 1
        while last < leaves.shape[0] - 1 and _cell_loss(costs, column, leaves[last], leaves[last + 1]) <= loss:
            last += 1
        node = (leaves[first], leaves[last], loss)
        if node not in found:
            found.append(node)
    return found


@njit(cache=True, nogil=True)
def _largest(prices, counts, members, wanted, spare):
    """Sum of the ``wanted`` largest prices among the members, sorted; the last counts ``spare`` times less."""
    total, left = 0.0, wanted
    for at in range(members.shape[0] - 1, -1, -1):
        kind = members[at]
        take = min(left, counts[kind] - (spare if at == members.shape[0] - 1 else 0))
        total += take * prices[kind]
        left -= take
        if left == 0:
            return total
    return -np.inf


@njit(cache=True, nogil=True)
def _promising(prices, counts, members, base, k, slack):
    """The members that may be in a group which undercuts its prices, if it loses ``base``: all but the cheapest."""
    least = k * base + slack - _largest(prices, counts, members, k - 1, 0)
    if not least <= prices[members[-1]]:  # also where fewer than k are left
        return members[:0]
    first = 0
    while prices[members[first]] < least:
        first += 1
    return members[first:]


@njit(cache=True, nogil=True)
def _within(costs, nodes, node, column, members, out):
    """The members below a node, into ``out``; none if a smaller node holds all of them."""
    count, low, high = 0, np.inf, -np.inf
    for kind in members:
        leaf = costs.points[kind, column]
        if nodes.first[node] <= leaf <= nodes.last[node]:
            out[count] = kind
            count += 1
            low, high = min(low, leaf), max(high, leaf)
    if count == 0 or _cell_loss(costs, column, low, high) < nodes.loss[node]:
        return 0
    return count


@njit(cache=True, nogil=True)
def _hold_roots(costs, nodes, depth, members, begin, relevant):
    """Marks the nodes of a column that hold a member from ``begin`` on."""
    column = nodes.column[depth]
    relevant[:] = False
    for at in range(members.shape[0] - 1, -1, -1):
        if members[at] < begin:
            break
        leaf = costs.points[members[at], column]
        for node in range(nodes.start[depth], nodes.start[depth + 1]):
            if nodes.first[node] <= leaf <= nodes.last[node]:
                relevant[node] = True


@njit(cache=True, nogil=True)
def _price_cell(costs, prices, counts, least, members, base, k, begin, slack, most, rows, losses, low, found, groups):
    """The groups inside a cell of the taxonomies with a root from ``begin`` on."""
    numeric = costs.numeric
    group = np.empty(k, np.int64)
    for at in range(members.shape[0] - 1, -1, -1):
        root = members[at]
        if root < begin:
            break
        best = prices[root] + _largest(prices, counts, members[: at + 1], k - 1, 1)
        if k * base - best >= -slack:
            break
        limit = min(-slack, low[root])
        if k * base - best >= limit or k * least[root] - best >= limit:
            continue
        count = candidates(
            costs, numeric, base, root, members[: at + 1], counts, k, (best + limit) / k, least, rows, losses
        )
        if count < k - 1:
            continue
        mine = rows[:count].copy()
        floor = np.maximum(least[mine], least[root])
        bound, better = best_box(
            costs, numeric, base, root, mine, losses[:count], floor, prices[mine], prices[root], k, limit, most, group
        )
        low[root] = min(low[root], bound)
        if better:
            found[root - begin] = True
            groups[root - begin] = group


@njit(cache=True, nogil=True)
def price_cells(costs, nodes, prices, counts, least, k, begin, end, slack, most, low, groups):
    """The least reduced costs of the groups with roots ``begin`` to ``end``, into ``low``; number of ``groups`` found.

    Records are sorted by their prices, equal ones count as one that occurs ``counts`` times, and a root has the largest
    price of its group. ``least`` is the loss of the smallest box around each, from below. ``most`` bounds the nodes of
    each search over numeric columns.
    """
    depths = nodes.column.shape[0]
    low[begin:end] = -slack
    found = np.zeros(end - begin, np.bool_)
    room = counts[:end].sum()
    rows, losses = np.empty(room, np.int64), np.empty(room)
    lists = np.empty((depths + 1, end), np.int64)
    sizes, bases = np.zeros(depths + 1, np.int64), np.zeros(depths + 1)
    relevant = np.zeros((depths + 1, nodes.first.shape[0]), np.bool_)
    at = np.zeros(depths + 1, np.int64)
    start = _promising(prices, counts, np.arange(end), 0.0, k, slack)
    if start.shape[0] == 0:
        return 0
    lists[0, : start.shape[0]] = start
    sizes[0], depth, fresh = start.shape[0], 0, True
    while depth >= 0:
        members = lists[depth, : sizes[depth]]
        if depth == depths:
            _price_cell(
                costs,
                prices,
                counts,
                least,
                members,
                bases[depth],
                k,
                begin,
                slack,
                most,
                rows,
                losses,
                low,
                found,
                groups,
            )
            depth, fresh = depth - 1, False
            continue
        if fresh:
            at[depth] = nodes.start[depth]
            _hold_roots(costs, nodes, depth, members, begin, relevant[depth])
        if at[depth] == nodes.start[depth + 1]:
            depth, fresh = depth - 1, False
            continue
        node = at[depth]
        at[depth] += 1
        fresh = False
        if not relevant[depth, node]:
            continue
        base = bases[depth] + nodes.loss[node]
        inside = lists[depth + 1]
        count = _within(costs, nodes, node, nodes.column[depth], members, inside)
        if count == 0:
            continue
        kept = _promising(prices, counts, inside[:count], base, k, slack)
        if kept.shape[0] == 0 or kept[-1] < begin:
            continue
        for place in range(kept.shape[0]):
            inside[place] = kept[place]
        sizes[depth + 1], bases[depth + 1] = kept.shape[0], base
        depth, fresh = depth + 1, True
    count = 0
    for root in range(end - begin):
        if found[root]:
            groups[count] = groups[root]
            count += 1
    return count
