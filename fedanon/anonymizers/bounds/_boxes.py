# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""BoxPricing of k records that lose less than their prices add up to, by branch and bound.

A group of k records costs k times the loss of its cell. The search is over boxes: a box holds at least its root, and
the best group inside takes the k - 1 other records of largest prices. Extending the box only raises its loss.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.anneal._costs import _cell_loss


@njit(cache=True)
def _loss_with(costs, low, high, record, limit):
    """Loss of a box once it holds the record; anything from ``limit`` on may be returned for more."""
    total = 0.0
    for c in range(low.shape[0]):
        x = costs.points[record, c]
        total += _cell_loss(costs, c, min(low[c], x), max(high[c], x))
        if total >= limit:
            return total
    return total


@njit(cache=True)
def _inside(losses, prices, rows, loss, k, chosen):
    """The k - 1 candidates of largest prices in the box; the sum of their prices, minus infinity if too few."""
    held, total = 0, 0.0
    room = np.empty(k - 1)
    for a in range(losses.shape[0]):
        if losses[a] > loss:
            break
        x = prices[a]
        if held == k - 1 and x <= room[k - 2]:
            continue
        at = min(held, k - 2)
        while at > 0 and room[at - 1] < x:
            room[at], chosen[at] = room[at - 1], chosen[at - 1]
            at -= 1
        room[at], chosen[at] = x, rows[a]
        held = min(held + 1, k - 1)
    for a in range(held):
        total += room[a]
    return total if held == k - 1 else -np.inf


@njit(cache=True)
def _best_box(costs, root, rows, pair, floor, prices, own, k, limit, nodes, group):
    """The least reduced cost of a group of the root and k - 1 of ``rows``, if below ``limit``: bound, whether found.

    Depth first: a box is extended by each candidate outside, the least loss first; those tried are left out after. The
    bound holds also where the number of nodes is used up. No group with a candidate loses less than its ``floor``.
    """
    q, count = costs.points.shape[1], rows.shape[0]
    who, loss = np.empty((k, count), np.int64), np.empty((k, count))
    low, high = np.empty((k, q)), np.empty((k, q))
    left, at, here = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k)
    largest, chosen = np.empty(k), np.empty(k - 1, np.int64)
    low[0], high[0] = costs.points[root], costs.points[root]
    who[0], loss[0], left[0] = np.arange(count), np.maximum(pair, floor), count
    best, least_open, found, used, depth, fresh = limit, np.inf, False, 0, 0, True
    while depth >= 0:
        if fresh:
            fresh = False
            used += 1
            order = np.argsort(loss[depth, : left[depth]])
            loss[depth, : left[depth]] = loss[depth, : left[depth]][order]
            who[depth, : left[depth]] = who[depth, : left[depth]][order]
            mine = prices[who[depth, : left[depth]]]
            value = (
                k * here[depth] - own - _inside(loss[depth, : left[depth]], mine, who[depth], here[depth], k, chosen)
            )
            if value < best:
                best, found = value, True
                group[0] = root
                group[1:] = rows[chosen]
            at[depth] = 0
            while at[depth] < left[depth] and loss[depth, at[depth]] <= here[depth]:
                at[depth] += 1
            if at[depth] == left[depth] or depth == k - 1:
                depth -= 1
                continue
        a = at[depth]
        bound = np.inf
        if a < left[depth]:
            # a group that leaves this box has this loss at least
            bound = _bound_from(loss[depth, : left[depth]], prices, who[depth], a, here[depth], k, own, largest)
        if bound >= best or used > nodes:
            least_open = min(least_open, bound if bound < best else np.inf)
            depth -= 1
            continue
        one = rows[who[depth, a]]
        at[depth] = a + 1
        here[depth + 1] = loss[depth, a]
        for c in range(q):
            low[depth + 1, c] = min(low[depth, c], costs.points[one, c])
            high[depth + 1, c] = max(high[depth, c], costs.points[one, c])
        most = (own + _top(prices, who[depth, : left[depth]], k - 1, largest) + best) / k
        kept = 0
        for b in range(left[depth]):
            # candidates tried before are out, unless they lie in the box by now and so come for free
            other = who[depth, b]
            total = _loss_with(costs, low[depth + 1], high[depth + 1], rows[other], most)
            if max(total, floor[other]) < most and (b >= a or total <= here[depth + 1]):
                who[depth + 1, kept], loss[depth + 1, kept] = other, max(total, here[depth + 1], floor[other])
                kept += 1
        left[depth + 1] = kept
        depth += 1
        fresh = True
    return min(best, least_open), found


@njit(cache=True)
def _top(prices, who, wanted, room):
    """Sum of the largest prices."""
    held = 0
    for a in who:
        x = prices[a]
        if held == wanted and x <= room[wanted - 1]:
            continue
        at = min(held, wanted - 1)
        while at > 0 and room[at - 1] < x:
            room[at] = room[at - 1]
            at -= 1
        room[at] = x
        held = min(held + 1, wanted)
    return room[:held].sum()


@njit(cache=True)
def _bound_from(losses, prices, who, a, inside, k, own, largest):
    """A lower bound for groups that hold one of the candidates from ``a`` on and none of those tried before it."""
    best, held, total = np.inf, 0, 0.0
    for b in range(losses.shape[0]):
        if b < a and losses[b] > inside:
            continue
        x = prices[who[b]]
        if held < k - 1 or x > largest[k - 2]:
            if held == k - 1:
                total -= largest[k - 2]
            at = min(held, k - 2)
            while at > 0 and largest[at - 1] < x:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = x
            total += x
            held = min(held + 1, k - 1)
        if b >= a and held == k - 1:
            best = min(best, k * losses[b] - own - total)
    return best


@njit(cache=True)
def _candidates(costs, root, count, limit, least, rows, losses):
    """The records before ``count`` that can be in a group with the root that loses less than ``limit``; how many."""
    found = 0
    here = costs.points[root]
    for v in range(count):
        if v != root and least[v] < limit:
            loss = _loss_with(costs, here, here, v, limit)
            if loss < limit:
                rows[found], losses[found] = v, loss
                found += 1
    return found


@njit(cache=True)
def price_boxes(costs, prices, least, k, begin, end, slack, nodes, low, groups):
    """The least reduced costs of the groups with roots ``begin`` to ``end``, into ``low``; number of ``groups`` found.

    Records are sorted by their prices and a root has the largest of its group, so its cell loses less than that price.
    ``least`` is the loss of the smallest box around each record, from below: no group with the record loses less.
    """
    n = prices.shape[0]
    rows, losses = np.empty(n, np.int64), np.empty(n)
    found_groups = 0
    for root in range(begin, end):
        low[root] = -slack
        if least[root] >= prices[root]:
            continue
        count = _candidates(costs, root, root, prices[root], least, rows, losses)
        if count < k - 1:
            continue
        mine = rows[:count].copy()
        bound, found = _best_box(
            costs,
            root,
            mine,
            losses[:count],
            np.maximum(least[mine], least[root]),
            prices[mine],
            prices[root],
            k,
            -slack,
            nodes,
            groups[found_groups],
        )
        low[root] = min(bound, -slack)
        found_groups += found
    return found_groups


@njit(cache=True)
def near_boxes(costs, prices, near, nodes, groups, value):
    """For every record a group of k with it and near records that costs little; its reduced cost per member."""
    k = groups.shape[1]
    losses, floor = np.empty(near.shape[1]), np.zeros(near.shape[1])
    for record in range(near.shape[0]):
        here = costs.points[record]
        for a in range(near.shape[1]):
            losses[a] = _loss_with(costs, here, here, near[record, a], np.inf)
        mine = near[record].astype(np.int64)
        _best_box(costs, record, mine, losses, floor, prices[mine], prices[record], k, np.inf, nodes, groups[record])
        value[record] = _reduced_cost(costs, prices, groups[record]) / k


@njit(cache=True)
def _reduced_cost(costs, prices, group):
    low, high = costs.points[group[0]].copy(), costs.points[group[0]].copy()
    total = 0.0
    for record in group:
        total -= prices[record]
        for c in range(low.shape[0]):
            low[c] = min(low[c], costs.points[record, c])
            high[c] = max(high[c], costs.points[record, c])
    return total + group.shape[0] * _loss_with(costs, low, high, group[0], np.inf)


@njit(cache=True)
def group_costs(costs, members):
    """k times the loss of the cell of each group."""
    none = np.zeros(costs.points.shape[0])
    out = np.empty(members.shape[0])
    for j in range(members.shape[0]):
        out[j] = _reduced_cost(costs, none, members[j])
    return out


@njit(cache=True)
def smallest_boxes(costs, most, k, begin, end, nodes, low):
    """Loss of the smallest box of k records around each, from below; ``most``: from above, by any such box."""
    n = costs.points.shape[0]
    rows, losses, none = np.empty(n, np.int64), np.empty(n), np.zeros(n)
    group = np.empty(k, np.int64)
    for record in range(begin, end):
        count = _candidates(costs, record, n, most[record], none, rows, losses)
        low[record] = most[record]
        if count >= k - 1:
            limit = k * most[record]
            mine = rows[:count].copy()
            bound, _ = _best_box(costs, record, mine, losses[:count], none[:count], none, 0.0, k, limit, nodes, group)
            low[record] = bound / k


@njit(cache=True)
def near_rows(near, kind, first, rows):
    """The near records of every record, itself apart: those equal to it, then those of the near distinct records."""
    width = rows.shape[1]
    for record in range(rows.shape[0]):
        count, own = 0, kind[record]
        for place in range(-1, near.shape[1]):
            other = own if place < 0 else near[own, place]
            if place >= 0 and other == own:
                continue
            for row in range(first[other], first[other + 1]):
                if row != record and count < width:
                    rows[record, count] = row
                    count += 1
        # a short list is filled with the records that come next, which are as good as any
        row = 0
        while count < width:
            present = row == record
            for a in range(count):
                present |= rows[record, a] == row
            if not present:
                rows[record, count] = row
                count += 1
            row += 1
